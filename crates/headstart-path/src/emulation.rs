//! An emulated path from start to stop.

use std::sync::{Arc, Mutex, PoisonError};

use headstart_link::LinkConfig;

use crate::carrier::{Carrier, Frames, PacketLog};
use crate::error::PathError;
use crate::feasible;
use crate::hosts::{HostId, Routes, Side, all_hosts, hosts_file_lines};
use crate::logs::{LogFiles, LogReport, Writer};
use crate::namespace::{Namespace, kill_processes};
use crate::packets::{Direction, PacketRecord};
use crate::report::{DirectionReport, Glance, PathReport};
use crate::router::{Asker, Router, RouterStats};

/// The path to emulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathConfig {
    /// Server to client: "down".
    pub forward: LinkConfig,
    /// Client to server: "up".
    pub reverse: LinkConfig,
    /// Tells emulations side by side apart: addresses are `10.77.LANE.0/24` and `fd77:0:LANE::/64`,
    /// so that a memory of paths by /24 or /48 does not take one for the other.
    pub lane: u8,
    /// Servers, and as many clients: all of them share the two links. From 1 to
    /// [`crate::MAX_HOSTS`].
    pub hosts: u16,
    /// Whether to keep a record of every packet, for [`Emulation::take_packets`].
    pub log_packets: bool,
    /// Files to write every packet into.
    pub log_files: LogFiles,
}

impl PathConfig {
    /// One server and one client on lane 0, without logs.
    #[must_use]
    pub fn new(forward: LinkConfig, reverse: LinkConfig) -> PathConfig {
        PathConfig {
            forward,
            reverse,
            lane: 0,
            hosts: 1,
            log_packets: false,
            log_files: LogFiles::default(),
        }
    }
}

/// A running path. Stops when dropped.
#[derive(Debug)]
pub struct Emulation {
    servers: Vec<Namespace>,
    clients: Vec<Namespace>,
    lane: u8,
    warnings: Vec<String>,
    log: Option<PacketLog>,
    writer: Option<Writer>,
    log_report: Option<LogReport>,
    state: State,
}

/// Gives a few numbers of the moment; they cost the router next to nothing.
#[derive(Debug)]
pub struct GlanceSource(Option<Asker>);

impl GlanceSource {
    /// Forward and reverse; `None` once the path has stopped.
    #[must_use]
    pub fn glance(&self) -> Option<(Glance, Glance)> {
        self.0.as_ref()?.glance().ok()
    }
}

#[derive(Debug)]
enum State {
    Running(Router),
    /// `None` if the router had died.
    Stopped(Option<Box<PathReport>>),
}

impl Emulation {
    /// Makes the namespaces and the router between them; takes some tens of milliseconds.
    ///
    /// # Errors
    /// [`PathError::cannot_here`] tells the errors of a machine that cannot do it from others,
    /// [`PathError::cannot_be`] those of a path that cannot be.
    pub fn start(config: PathConfig) -> Result<Emulation, PathError> {
        let pairs = feasible::check(&config)?;
        let carrier = |direction: Direction, link| {
            Carrier::new(direction, link).map_err(|cause| PathError::BadQueue {
                direction: direction.name(),
                cause,
            })
        };
        let forward = carrier(Direction::Forward, config.forward.clone())?;
        let reverse = carrier(Direction::Reverse, config.reverse.clone())?;
        let lane = config.lane;
        let hosts_file = hosts_file_lines(lane, pairs);
        // All at once: the kernel takes its time for each.
        let begun: Vec<_> = all_hosts(pairs)
            .map(|host| Namespace::begin(host, lane, &hosts_file))
            .collect();
        let mut sides = Side::BOTH.map(|_| (Vec::new(), Vec::new()));
        let mut warnings: Vec<String> = Vec::new();
        for beginning in begun {
            let (namespace, tun, new_warnings) = beginning?.finish()?;
            let side = &mut sides[namespace.host().side as usize];
            side.0.push(namespace);
            side.1.push(tun);
            warnings.extend(new_warnings);
        }
        let [(servers, server_tuns), (clients, client_tuns)] = sides;
        let wants_files = config.log_files.parquet.is_some() || config.log_files.pcap.is_some();
        let (writer, capture) = match wants_files {
            true => Some(Writer::start(&config.log_files, lane, pairs)?).unzip(),
            false => (None, None),
        };
        let log = config.log_packets.then(|| Arc::new(Mutex::new(Vec::new())));
        let (router, router_warnings) = Router::start(
            format!("hs-router-{lane}"),
            [server_tuns, client_tuns],
            [forward, reverse],
            Routes { lane, pairs },
            Frames::new(log.clone(), capture),
        )
        .map_err(|cause| PathError::Router { cause })?;
        warnings.extend(router_warnings);
        Ok(Emulation {
            servers,
            clients,
            lane,
            warnings,
            log,
            writer,
            log_report: None,
            state: State::Running(router),
        })
    }

    /// The server's side; of several, the first server.
    #[must_use]
    pub fn server(&self) -> &Namespace {
        &self.servers[0]
    }

    /// The client's side; of several, the first client.
    #[must_use]
    pub fn client(&self) -> &Namespace {
        &self.clients[0]
    }

    /// All servers; number i, from 1, is at i - 1.
    #[must_use]
    pub fn servers(&self) -> &[Namespace] {
        &self.servers
    }

    /// All clients; number i, from 1, is at i - 1.
    #[must_use]
    pub fn clients(&self) -> &[Namespace] {
        &self.clients
    }

    /// One host; `None` if there are not so many.
    #[must_use]
    pub fn host(&self, host: HostId) -> Option<&Namespace> {
        let side = match host.side {
            Side::Server => &self.servers,
            Side::Client => &self.clients,
        };
        side.get(usize::from(host.number.checked_sub(1)?))
    }

    /// Where to get a few numbers of the moment, from any thread.
    #[must_use]
    pub fn glance_source(&self) -> GlanceSource {
        GlanceSource(match &self.state {
            State::Running(router) => Some(router.asker()),
            State::Stopped(_) => None,
        })
    }

    /// The packets whose fate was decided since this was last called, by time of arrival. Empty if
    /// no log is kept. After the stop it also gives those that were still in flight.
    #[must_use]
    pub fn take_packets(&self) -> Vec<PacketRecord> {
        let Some(log) = &self.log else {
            return Vec::new();
        };
        let mut packets = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
        packets.sort_by_key(|packet| packet.at_ns);
        packets
    }

    /// What the path did so far; after the stop, in all.
    ///
    /// # Errors
    /// [`PathError::RouterDied`], or the devices' counters could not be read.
    pub fn report(&self) -> Result<PathReport, PathError> {
        match &self.state {
            State::Running(router) => Ok(self.put_together(router.stats()?, self.device_drops()?)),
            State::Stopped(Some(report)) => Ok(PathReport::clone(report)),
            State::Stopped(None) => Err(PathError::RouterDied),
        }
    }

    /// Kills what still runs in the namespaces, ends the router and lets go of everything.
    /// Stopping twice is stopping once.
    ///
    /// # Errors
    /// [`PathError::RouterDied`] when there is no report; everything is torn down all the same.
    pub fn stop(&mut self) -> Result<PathReport, PathError> {
        if let State::Running(_) = self.state {
            // Counters of devices that cannot be read any more are no reason not to stop.
            let device_drops = self.device_drops().unwrap_or_default();
            if let State::Running(router) = std::mem::replace(&mut self.state, State::Stopped(None))
            {
                let stats = router.stop().ok();
                self.log_report = self.writer.take().map(Writer::finish);
                let report = stats.map(|stats| Box::new(self.put_together(stats, device_drops)));
                self.state = State::Stopped(report);
            }
            let all: Vec<&Namespace> = self.clients.iter().chain(&self.servers).collect();
            kill_processes(&all);
            let all = self.clients.iter_mut().chain(&mut self.servers);
            all.for_each(Namespace::close);
        }
        self.report()
    }

    /// Packets that the devices dropped before the router could read them: servers', clients'.
    fn device_drops(&self) -> Result<(u64, u64), PathError> {
        let of = |side: &[Namespace]| side.iter().map(Namespace::tun_dropped_pkts).sum();
        let (servers, clients): (Result<u64, _>, Result<u64, _>) =
            (of(&self.servers), of(&self.clients));
        Ok((servers?, clients?))
    }

    fn put_together(&self, stats: RouterStats, device_drops: (u64, u64)) -> PathReport {
        let forward = DirectionReport::new(&stats.forward, device_drops.0);
        let reverse = DirectionReport::new(&stats.reverse, device_drops.1);
        PathReport::new(
            self.lane,
            self.servers.len(),
            [forward, reverse],
            self.warnings.clone(),
            self.log_report.clone(),
        )
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        // The report was not asked for.
        let _ = self.stop();
    }
}
