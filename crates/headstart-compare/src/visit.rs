//! One visit: one start-up, all cases once, on a path, a server and a client of its own.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use headstart_core::INFINITE_SSTHRESH;
use headstart_kernel::{Kernel, PathEntry, Prefix, Sample};
use headstart_path::Emulation;
use headstart_scenario::{Case, Direction, PacketRow, TransferRecord, WindowRow};

use crate::client::{CurlClient, Fetched};
use crate::error::CompareError;
use crate::plan::{Plan, Runner};
use crate::run::Control;
use crate::server::NginxServer;
use crate::wire::{self, WireTransfer};

/// The prefix length of the path memory for the emulation's addresses: one prefix a lane.
const PREFIX_BITS: u8 = 24;

/// What a visit needs of the run.
pub(crate) struct Visit<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) kernel: &'a Mutex<Kernel>,
    pub(crate) dscp: u8,
    pub(crate) nginx: &'a Path,
    pub(crate) curl: &'a Path,
    pub(crate) control: &'a Control,
    pub(crate) runner: &'a Runner,
    pub(crate) repeat: u32,
    pub(crate) lane: u8,
    /// The position of the visit's first transfer in the order of the run.
    pub(crate) order: u32,
}

/// What came of it.
pub(crate) struct Visited {
    pub(crate) transfers: Vec<Measured>,
    pub(crate) valid: bool,
    pub(crate) packets: u64,
    /// Looks at the window that were lost.
    pub(crate) samples_lost: u64,
}

/// What a warming transfer left in the path memory.
struct Warmed {
    bytes: u64,
    memory: Vec<PathEntry>,
}

/// One measured transfer.
pub(crate) struct Measured {
    pub(crate) record: TransferRecord,
    pub(crate) packets: Vec<PacketRow>,
    pub(crate) windows: Vec<WindowRow>,
    /// To find the start-up's own words: who and when.
    pub(crate) client: IpAddr,
    pub(crate) port: u16,
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

impl Visit<'_> {
    pub(crate) fn run(&self) -> Result<Visited, CompareError> {
        let mut emulation = Emulation::start(self.plan.path(self.lane))?;
        let _marker = self.mark(&emulation)?;
        let sizes: Vec<u64> = self
            .plan
            .scenario
            .cases
            .iter()
            .flat_map(|case| [Some(case.bytes()), case.warm_bytes()])
            .flatten()
            .map(|size| size.bytes())
            .collect();
        let server = NginxServer::start(
            self.nginx,
            emulation.server(),
            self.runner.control.name(),
            &sizes,
        )?;
        let mut transfers = Vec::new();
        let mut warmed = None;
        for case in &self.plan.scenario.cases {
            let client = CurlClient {
                curl: self.curl,
                namespace: emulation.client(),
                server: emulation.server().addr_v4().into(),
                control: self.control,
            };
            let fetched = self.fetch(&client, case, &mut warmed)?;
            self.settle();
            let samples = server.watch.take_samples()?;
            let log = emulation.take_packets();
            let Some(seen) = wire::last_transfer(&log, fetched.port, self.dscp) else {
                return Err(CompareError::Client {
                    program: "curl",
                    cause: "its transfer was not seen on the path".to_owned(),
                });
            };
            let client_addr = emulation.client().addr_v4().into();
            let order = self.order + u32::try_from(transfers.len()).unwrap_or(u32::MAX);
            transfers.push(self.measured(case, order, fetched, seen, &samples, client_addr));
            self.control.transfer_done();
        }
        if server.watch.refused()? > 0 {
            return Err(CompareError::Server {
                program: "nginx",
                cause: format!(
                    "the kernel refused its connections the congestion control {}",
                    self.runner.control.name()
                ),
            });
        }
        let samples_lost = server.watch.samples_lost()?;
        drop(server);
        let report = emulation.stop()?;
        for transfer in &mut transfers {
            transfer.record.valid = report.valid;
            transfer.record.invalid_reason =
                (!report.valid).then(|| report.invalid_because.join("; "));
        }
        let packets = report.forward.out_pkts;
        Ok(Visited {
            transfers,
            valid: report.valid,
            packets,
            samples_lost,
        })
    }

    fn kernel(&self) -> std::sync::MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(
        &self,
        emulation: &Emulation,
    ) -> Result<Option<headstart_kernel::Attachment>, CompareError> {
        let params = self.runner.control.params();
        if !params.is_some_and(|params| params.startup().marks()) {
            return Ok(None);
        }
        let marker = self.kernel().marker()?;
        let ifindex = emulation.server().tun_ifindex();
        Ok(Some(emulation.server().run(|| marker.attach(ifindex))??))
    }

    fn fetch(
        &self,
        client: &CurlClient<'_>,
        case: &Case,
        warmed: &mut Option<Warmed>,
    ) -> Result<Fetched, CompareError> {
        let bytes = case.bytes().bytes();
        match case {
            Case::NewCold { .. } => {
                self.forget(client)?;
                client.fetch(bytes)
            }
            Case::ResumeWarm {
                warm_bytes, idle, ..
            } => {
                self.forget(client)?;
                client.fetch_rest_fetch(warm_bytes.bytes(), idle.as_duration(), bytes)
            }
            Case::NewWarm { warm_bytes, .. } => {
                self.warm(client, warm_bytes.bytes(), warmed)?;
                client.fetch(bytes)
            }
        }
    }

    /// Leaves the memory as a first transfer of `bytes` leaves it: by making one, or as it was after that of an
    /// earlier case. What the cases in between have taught is not in it.
    fn warm(
        &self,
        client: &CurlClient<'_>,
        bytes: u64,
        warmed: &mut Option<Warmed>,
    ) -> Result<(), CompareError> {
        self.forget(client)?;
        match warmed {
            Some(earlier) if earlier.bytes == bytes => {
                for entry in &earlier.memory {
                    self.kernel().remember(entry)?;
                }
            }
            _ => {
                client.fetch(bytes)?;
                self.settle();
                let prefix = Prefix::of(client.namespace.addr_v4().into(), PREFIX_BITS);
                let mut memory = self.kernel().paths()?;
                memory.retain(|entry| entry.prefix == prefix);
                *warmed = Some(Warmed { bytes, memory });
            }
        }
        Ok(())
    }

    fn forget(&self, client: &CurlClient<'_>) -> Result<(), CompareError> {
        let prefix = Prefix::of(client.namespace.addr_v4().into(), PREFIX_BITS);
        self.kernel().forget(prefix)?;
        Ok(())
    }

    /// Lets the last ACKs and the closing of the connection cross the path.
    fn settle(&self) {
        sleep(Duration::from_secs_f64(self.plan.rtt_ms() * 2.0 / 1000.0));
    }

    fn measured(
        &self,
        case: &Case,
        order: u32,
        fetched: Fetched,
        seen: WireTransfer,
        samples: &[Sample],
        client: IpAddr,
    ) -> Measured {
        let startup = self.runner.label.clone();
        let path = &self.plan.scenario.path_name;
        let (bytes, kind, repeat) = (case.bytes().bytes(), case.kind(), self.repeat);
        let packets = seen.packets.iter().map(|packet| PacketRow {
            startup: startup.clone(),
            on: self.plan.ground,
            path: path.clone(),
            case: kind,
            bytes,
            repeat,
            t_ms: packet.t_ms,
            direction: if packet.is_data {
                Direction::Data
            } else {
                Direction::Ack
            },
            from_byte: packet.from_byte,
            to_byte: packet.to_byte,
            low_priority: packet.low_priority,
            retransmission: packet.retransmission,
            dropped: packet.dropped,
        });
        let in_transfer = |sample: &&Sample| {
            sample.remote_port == fetched.port
                && (seen.began_ns..=seen.ended_ns + 1_000_000).contains(&sample.at_ns)
        };
        let windows = samples.iter().filter(in_transfer).map(|sample| WindowRow {
            startup: startup.clone(),
            on: self.plan.ground,
            path: path.clone(),
            case: kind,
            bytes,
            repeat,
            t_ms: (sample.at_ns - seen.began_ns) as f64 / 1e6,
            cwnd_pkts: sample.cwnd_pkts,
            ssthresh_pkts: (sample.ssthresh_pkts < INFINITE_SSTHRESH)
                .then_some(sample.ssthresh_pkts),
            srtt_ms: f64::from(sample.srtt_us) / 1000.0,
            inflight_pkts: sample.inflight_pkts,
        });
        Measured {
            packets: packets.collect(),
            windows: windows.collect(),
            client,
            port: fetched.port,
            began_ns: seen.began_ns,
            ended_ns: seen.ended_ns,
            record: TransferRecord {
                startup: startup.clone(),
                on: self.plan.ground,
                path: path.clone(),
                case: kind,
                repeat,
                order,
                lane: u32::from(self.lane),
                bytes,
                fct_ms: fetched.total_ms,
                connect_ms: fetched.connect_ms,
                limit_ms: self.plan.scenario.path.limit_ms(case),
                retransmitted_pkts: seen.retransmitted_pkts,
                router_drops: seen.router_drops,
                exit_why: None,
                exit_cwnd_pkts: None,
                valid: true,
                invalid_reason: None,
            },
        }
    }
}
