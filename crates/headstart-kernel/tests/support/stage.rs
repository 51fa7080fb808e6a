//! Where rules are tried.

use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use headstart_kernel::{Cgroup, Kernel, Options, Policy, Transfer};

use super::{Lane, everything, inside, kernel};

/// Lane and cgroup membership are the process's.
static ONE_STAGE: Mutex<()> = Mutex::new(());

/// A path whose server is in a cgroup that the policy is attached to.
pub struct Stage {
    pub policy: Policy,
    pub lane: Lane,
    pub kernel: Kernel,
    pub cgroup: Cgroup,
    _alone: MutexGuard<'static, ()>,
}

/// With all start-ups: their names are the machine's, so that such a test holds the lock.
pub fn stage(rate: &str, rtt_ms: u64, queue_pkts: u32) -> Option<Stage> {
    stage_of(everything(), rate, rtt_ms, queue_pkts)
}

/// Without any: nothing of the machine's is taken, and no lock is needed.
pub fn native_stage(rate: &str, rtt_ms: u64, queue_pkts: u32) -> Option<Stage> {
    stage_of(Options::default(), rate, rtt_ms, queue_pkts)
}

/// `None`: the test is skipped.
fn stage_of(options: Options, rate: &str, rtt_ms: u64, queue_pkts: u32) -> Option<Stage> {
    let options = Options {
        transfer_room_bytes: 1 << 20,
        ..options
    };
    let alone = ONE_STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let kernel = kernel(&options)?;
    let cgroup = Cgroup::create().unwrap();
    let policy = Policy::attach(&kernel, cgroup.path()).unwrap();
    let lane = inside(&cgroup, || Lane::new(&kernel, 1, rate, rtt_ms, queue_pkts));
    Some(Stage {
        policy,
        lane,
        kernel,
        cgroup,
        _alone: alone,
    })
}

impl Stage {
    /// The next `count` records: the last ACK may still be on its way.
    pub fn records(&self, count: usize) -> Vec<Transfer> {
        let mut taken = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        while taken.len() < count && Instant::now() < deadline {
            taken.extend(self.policy.take_transfers().unwrap());
            if self.policy.counts().unwrap().pending > 0 {
                self.policy.flush().unwrap();
            }
            sleep(Duration::from_millis(10));
        }
        assert_eq!(taken.len(), count, "{taken:?}");
        taken
    }

    /// A server of its own, in the cgroup.
    pub fn listen(&self, at: (&str, u16)) -> TcpListener {
        let server = self.lane.emulation.server();
        inside(&self.cgroup, || {
            server.run(|| TcpListener::bind(at).unwrap()).unwrap()
        })
    }
}
