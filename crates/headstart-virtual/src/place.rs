//! Where a machine runs: machines side by side, of this process or of another one, on different CPUs.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// More machines than this on one CPU are not told apart.
const MACHINES_ON_A_CPU: usize = 16;

/// A machine's place among those that run now. It is free again when this goes, however the process ends: what holds
/// it is a name of a socket that nobody connects to, which leaves nothing in any directory.
#[derive(Debug)]
pub(crate) struct Place {
    /// The CPU. None where those that we may use are not known.
    pub(crate) cpu: Option<CpuSet>,
    _name: Option<UnixListener>,
}

impl Place {
    /// The first that is free: the CPUs in turn.
    pub(crate) fn take() -> Place {
        let cpus = allowed();
        let (number, name) = (0..cpus.len() * MACHINES_ON_A_CPU)
            .find_map(|number| Some((number, hold(number)?)))
            .unzip();
        let cpu = cpus
            .get(number.unwrap_or(0) % cpus.len().max(1))
            .and_then(|cpu| {
                let mut one = CpuSet::new();
                one.set(*cpu).ok()?;
                Some(one)
            });
        Place { cpu, _name: name }
    }
}

/// The CPUs that we may use.
fn allowed() -> Vec<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count())
        .filter(|cpu| allowed.is_set(*cpu) == Ok(true))
        .collect()
}

/// The abstract name of that place (unix(7)); none where another machine has it.
fn hold(number: usize) -> Option<UnixListener> {
    let name = format!("headstart-virtual-{number}");
    let address = SocketAddr::from_abstract_name(name).ok()?;
    UnixListener::bind_addr(&address).ok()
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn machines_side_by_side_are_spread_over_the_cpus() {
        let cpus = allowed();
        // Others on this machine may have machines: it is the number of each CPU that is looked at.
        let places: Vec<Place> = (0..2 * cpus.len()).map(|_| Place::take()).collect();
        let on = |wanted: usize| {
            let there = places.iter().filter_map(|place| place.cpu.as_ref());
            there.filter(|cpu| cpu.is_set(wanted) == Ok(true)).count()
        };
        assert_eq!(cpus.iter().map(|cpu| on(*cpu)).sum::<usize>(), places.len());
        assert!(cpus.iter().all(|cpu| on(*cpu) > 0));
    }

    #[test]
    fn a_place_is_free_again_when_its_machine_has_ended() {
        // No machine's: there are not that many places.
        let number = usize::MAX - std::process::id() as usize;
        let held = hold(number);
        assert!(held.is_some() && hold(number).is_none());
        drop(held);
        // A program that another test starts has it, too, for the moment until it is executed.
        let patience = Instant::now() + Duration::from_secs(60);
        while hold(number).is_none() {
            assert!(Instant::now() < patience, "it is still taken");
            sleep(Duration::from_millis(10));
        }
    }
}
