//! What the benchmarks of cost and of load share: where their traffic is, and the median.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]
#![allow(dead_code, reason = "each benchmark uses its part of a private module")]

use std::fs::File;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns};

/// The server's address on the veth.
pub(crate) const SERVER: &str = "10.77.250.1";

/// Two namespaces with a veth between them.
pub(crate) struct Network {
    /// The server's, the client's.
    pub(crate) names: [String; 2],
}

impl Network {
    /// `what` is measured: part of the namespaces' names.
    pub(crate) fn new(what: &str) -> Network {
        let names = ["s", "c"].map(|end| format!("hs-{what}-{}-{end}", std::process::id()));
        let network = Network { names };
        let [server, client] = &network.names;
        for name in &network.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        ip(&[
            "-n", server, "link", "add", "v0", "type", "veth", "peer", "name", "v1",
        ]);
        ip(&["-n", server, "link", "set", "v1", "netns", client]);
        ip(&["-n", server, "addr", "add", "10.77.250.1/24", "dev", "v0"]);
        ip(&["-n", client, "addr", "add", "10.77.250.2/24", "dev", "v1"]);
        ip(&["-n", server, "link", "set", "v0", "up"]);
        ip(&["-n", client, "link", "set", "v1", "up"]);
        network
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

pub(crate) fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).status().unwrap();
    assert!(done.success(), "ip {} failed", arguments.join(" "));
}

/// Does `job` on a thread of its own in the namespace `name`. The thread has the name `who`: a profiler tells
/// contestants apart by it.
pub(crate) fn inside<T: Send>(name: &str, who: &str, job: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        thread::Builder::new()
            .name(who.to_owned())
            .spawn_scoped(scope, || {
                let file = File::open(format!("/run/netns/{name}")).unwrap();
                setns(file, CloneFlags::CLONE_NEWNET).unwrap();
                job()
            })
            .unwrap()
            .join()
            .unwrap()
    })
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}
