//! An emulated path from start to stop.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use headstart_link::LinkConfig;

use crate::error::PathError;
use crate::namespace::Namespace;
use crate::packets::{Direction, PacketRecord};
use crate::report::{DirectionReport, PathReport};
use crate::router::{Carrier, PacketLog, Router, RouterStats};

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
    /// Whether to keep a record of every packet, for [`Emulation::take_packets`].
    pub log_packets: bool,
}

impl PathConfig {
    /// The server's addresses.
    #[must_use]
    pub fn server_addresses(&self) -> (Ipv4Addr, Ipv6Addr) {
        self.addresses(1)
    }

    /// The client's addresses.
    #[must_use]
    pub fn client_addresses(&self) -> (Ipv4Addr, Ipv6Addr) {
        self.addresses(2)
    }

    fn addresses(&self, host: u8) -> (Ipv4Addr, Ipv6Addr) {
        let v6 = Ipv6Addr::new(0xfd77, 0, u16::from(self.lane), 0, 0, 0, 0, u16::from(host));
        (Ipv4Addr::new(10, 77, self.lane, host), v6)
    }
}

/// A running path. Stops when dropped.
#[derive(Debug)]
pub struct Emulation {
    server: Namespace,
    client: Namespace,
    lane: u8,
    warnings: Vec<String>,
    log: Option<PacketLog>,
    state: State,
}

#[derive(Debug)]
enum State {
    Running(Router),
    /// `None` if the router had died.
    Stopped(Option<Box<PathReport>>),
}

impl Emulation {
    /// Makes both namespaces and the router between them; takes some tens of milliseconds.
    ///
    /// # Errors
    /// [`PathError::cannot_here`] tells the errors of a machine that cannot do it from others.
    pub fn start(config: PathConfig) -> Result<Emulation, PathError> {
        let carrier = |direction, name, link| {
            Carrier::new(direction, link).map_err(|cause| PathError::BadQueue {
                direction: name,
                cause,
            })
        };
        let forward = carrier(Direction::Forward, "forward", config.forward.clone())?;
        let reverse = carrier(Direction::Reverse, "reverse", config.reverse.clone())?;
        let (server, server_tun, mut warnings) =
            Namespace::make("server", config.lane, config.server_addresses())?;
        let (client, client_tun, client_warnings) =
            Namespace::make("client", config.lane, config.client_addresses())?;
        warnings.extend(client_warnings);
        let log = config.log_packets.then(|| Arc::new(Mutex::new(Vec::new())));
        let name = format!("hs-router-{}", config.lane);
        let (router, router_warnings) = Router::start(
            name,
            [server_tun, client_tun],
            [forward, reverse],
            log.clone(),
        )
        .map_err(|cause| PathError::Router { cause })?;
        warnings.extend(router_warnings);
        let (lane, state) = (config.lane, State::Running(router));
        Ok(Emulation {
            server,
            client,
            lane,
            warnings,
            log,
            state,
        })
    }

    /// The server's side.
    #[must_use]
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The client's side.
    #[must_use]
    pub fn client(&self) -> &Namespace {
        &self.client
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
                let report = stats.map(|stats| Box::new(self.put_together(stats, device_drops)));
                self.state = State::Stopped(report);
            }
            self.client.close();
            self.server.close();
        }
        self.report()
    }

    /// Packets that the devices dropped before the router could read them: server's, client's.
    fn device_drops(&self) -> Result<(u64, u64), PathError> {
        Ok((
            self.server.tun_dropped_pkts()?,
            self.client.tun_dropped_pkts()?,
        ))
    }

    fn put_together(&self, stats: RouterStats, device_drops: (u64, u64)) -> PathReport {
        let forward = DirectionReport::new(&stats.forward, device_drops.0);
        let reverse = DirectionReport::new(&stats.reverse, device_drops.1);
        PathReport::new(self.lane, forward, reverse, self.warnings.clone())
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        // The report was not asked for.
        let _ = self.stop();
    }
}
