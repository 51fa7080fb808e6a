//! The options of `headstart path`, and the path that they describe.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use headstart_link::{Preset, RateSpec, Trace};
use headstart_path::background::BackgroundConfig;
use headstart_path::{LinkConfig, LogFiles, PathConfig, QueueSpec, Span};

use super::wire::WireArgs;

/// The packets that a queue of one bandwidth-delay product is counted in.
const FULL_PACKET_BYTES: u32 = 1500;

/// The least that a queue holds by default: Linux sends as many at once on a new connection.
const LEAST_QUEUE_PKTS: u32 = 10;

/// Run a command behind an emulated path.
///
/// Makes two network namespaces, a server's and a client's, with a router of the given rate, delay
/// and queue between them, and runs CMD, or a shell, on the client's side. Needs root. Everything is
/// gone afterwards; no default of the machine is changed.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PathArgs {
    /// A whole path by name: directpc, satellite, cable-1998, t1, t1-satellite, t3-satellite, dsl,
    /// docsis, wifi; what is given beside it stands in its place
    #[arg(long, value_name = "NAME", value_parser = preset_named)]
    preset: Option<&'static Preset>,

    /// Rate from server to client ("down"): 12mbit, 1.5mbit, 100kbit; or in steps, 12mbit@0s,1mbit@10s,
    /// from the beginning again with ,repeat@20s; or a shared access link, wifi:26mbit/65mbit or
    /// docsis:384kbit
    #[arg(
        long,
        required_unless_present_any = ["rate_trace", "preset"],
        conflicts_with = "rate_trace"
    )]
    rate: Option<RateSpec>,

    /// Rate from client to server ("up") [default: as --rate]
    #[arg(long, value_name = "RATE", conflicts_with = "reverse_rate_trace")]
    reverse_rate: Option<RateSpec>,

    /// In place of --rate: a recorded trace in mahimahi's format
    #[arg(long, value_name = "FILE")]
    rate_trace: Option<PathBuf>,

    /// In place of --reverse-rate: a recorded trace
    #[arg(long, value_name = "FILE")]
    reverse_rate_trace: Option<PathBuf>,

    /// Round-trip time of the empty path, half of it each way, like 400ms
    #[arg(long, value_name = "TIME", required_unless_present = "preset")]
    rtt: Option<Span>,

    /// Queue in front of the server-to-client link: drop-tail:400, priority:400, red:400,min=50,max=150,
    /// priority-red:..., codel, fq-codel; sizes in packets, bytes (64KiB) or 1bdp
    /// [default: the preset's; drop-tail of one bandwidth-delay product, at least 10 packets]
    #[arg(long)]
    queue: Option<QueueSpec>,

    /// Queue in front of the client-to-server link [default: as --queue]
    #[arg(long, value_name = "QUEUE")]
    reverse_queue: Option<QueueSpec>,

    /// The code point of low drop priority, for queues with priority drop [default: 1, or the queue's]
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..64))]
    priority_dscp: Option<u8>,

    /// Start this shell command on the server's side first, and wait until its TCP port listens
    #[arg(long, value_name = "CMD")]
    pub(super) server: Option<String>,

    /// The port to wait for [default: any]
    #[arg(long, value_name = "PORT", requires = "server", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) server_port: Option<u16>,

    /// Tells paths side by side apart: the addresses are 10.77.LANE.1 and .2
    #[arg(long, default_value_t = 0)]
    pub(super) lane: u8,

    /// Hosts a side: N servers and N clients, all through the same two queues; CMD runs on the first
    /// client, the server on the first server
    #[arg(long, default_value_t = 1, value_name = "N")]
    hosts: u16,

    /// Cross-traffic through the same queues: bulk:10 (ten endless downloads), bulk:5,up, web:20,size=10KiB,
    /// think=1s; with window=8KiB, congestion=reno, start=2s. From the second hosts on if there are more
    /// than one. May be given several times
    #[arg(long, value_name = "SPEC")]
    pub(super) background: Vec<BackgroundConfig>,

    /// Write every packet's fate into this Parquet file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Write the packets of both sides into this pcapng file, drops marked in comments
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Bytes of each packet that --pcap keeps, at least 128 [default: all]
    #[arg(long, value_name = "BYTES", requires = "pcap", value_parser = clap::value_parser!(u32).range(128..=65_535))]
    snaplen: Option<u32>,

    /// Print the results as one JSON document on standard output; CMD's output goes to standard error
    #[arg(long)]
    pub(super) json: bool,

    /// No live status line and no summary
    #[arg(long)]
    pub(super) quiet: bool,

    /// Start an interactive shell on the client's side ($SHELL, or bash) in place of CMD
    #[arg(long, conflicts_with_all = ["command", "json"])]
    pub(super) shell: bool,

    #[command(flatten)]
    pub(super) wire: WireArgs,

    /// The command and its arguments, run on the client's side
    #[arg(last = true, required_unless_present = "shell", value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
The hosts know each other as server and client (of several: server1, client1, server2, ...; server-v6 for
IPv6), without a change to the machine's /etc/hosts. The addresses are 10.77.LANE.1 and .2 (server2 and client2: .3 and .4)
and fd77:0:LANE::1 and ::2.

Environment of CMD and the server:
  HEADSTART_SERVER, HEADSTART_CLIENT       IPv4 addresses of the first server and client
  HEADSTART_SERVER6, HEADSTART_CLIENT6     their IPv6 addresses
  HEADSTART_SERVERS, HEADSTART_CLIENTS     all IPv4 addresses, separated by spaces; ...S6: all IPv6 ones
  HEADSTART_NS_SERVERS, HEADSTART_NS_CLIENTS   all network namespaces, for nsenter --net=...
  HEADSTART_LANE                           the lane

Examples:
  headstart path --rate 10mbit --rtt 120ms -- ping -c 3 server

  headstart path --rate 12mbit --reverse-rate 1mbit --rtt 400ms --queue drop-tail:400 \\
      --server 'python3 -m http.server 8080' --server-port 8080 \\
      -- curl -so /dev/null -w '%{time_total} s\\n' http://server:8080/

  headstart path --rate 10mbit --rtt 120ms --shell

  headstart path --rate 20mbit --rtt 50ms --hosts 4 --background bulk:3 --background web:20,size=10KiB,think=1s \\
      --server 'python3 -m http.server 8080' -- curl -so /dev/null http://server:8080/

  headstart path --rate 10mbit --rtt 40ms --log fates.parquet --pcap both.pcapng --snaplen 128 -- ping -c 3 server

Exit code: CMD's own; 1 the run failed, 2 wrong usage or a path that cannot be, 3 this machine cannot, 130
and 143 when interrupted or terminated.";

impl PathArgs {
    /// The path that the options describe.
    pub(super) fn config(&self) -> anyhow::Result<PathConfig> {
        let read = |file: &Option<PathBuf>| file.as_deref().map(read_trace).transpose();
        let rate = match read(&self.rate_trace)? {
            Some(trace) => trace,
            // One of the three is there, or this would not have been parsed.
            None => self
                .or_preset(self.rate.clone(), |preset| preset.rate)?
                .context("neither --rate nor --rate-trace nor --preset")?,
        };
        let reverse_rate = read(&self.reverse_rate_trace)?.or(self.reverse_rate.clone());
        let reverse_rate = self.or_preset(reverse_rate, |preset| preset.reverse_rate)?;
        let rtt = self
            .or_preset(self.rtt, |preset| preset.rtt)?
            .context("neither --rtt nor --preset")?;
        let queue = self.or_preset(self.queue, |preset| preset.queue)?;
        let queue = queue.unwrap_or_else(|| {
            let (rate, bytes) = (rate.nominal(), FULL_PACKET_BYTES);
            QueueSpec::drop_tail_of_one_bdp(rate, rtt, bytes, LEAST_QUEUE_PKTS)
        });
        let reverse_queue = self.or_preset(self.reverse_queue, |preset| preset.reverse_queue)?;
        let link = |rate: RateSpec, delay_ns, queue: QueueSpec| {
            let queue = match self.priority_dscp {
                Some(dscp) => queue.with_low_priority_dscp(dscp),
                None => queue,
            };
            LinkConfig {
                rtt,
                ..LinkConfig::new(rate.nominal(), Span::from_ns(delay_ns), queue)
            }
            .with_rate(rate)
        };
        let reverse_delay_ns = rtt.as_ns() / 2;
        let mut reverse = link(
            reverse_rate.unwrap_or(rate.clone()),
            reverse_delay_ns,
            reverse_queue.unwrap_or(queue),
        );
        let mut forward = link(rate, rtt.as_ns() - reverse_delay_ns, queue);
        self.wire.apply(&mut forward, &mut reverse);
        Ok(PathConfig {
            forward,
            reverse,
            lane: self.lane,
            hosts: self.hosts,
            log_packets: false,
            log_files: LogFiles {
                parquet: self.log.clone(),
                pcap: self.pcap.clone(),
                snap_bytes: self.snaplen.unwrap_or(0),
            },
        })
    }

    /// What is given, or else what the preset says.
    fn or_preset<T>(
        &self,
        given: Option<T>,
        text: fn(&Preset) -> &'static str,
    ) -> anyhow::Result<Option<T>>
    where
        T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        match (given, self.preset) {
            (None, Some(preset)) => Ok(Some(text(preset).parse()?)),
            (given, _) => Ok(given),
        }
    }
}

fn preset_named(name: &str) -> Result<&'static Preset, String> {
    Preset::named(name).ok_or_else(|| {
        let known: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name).collect();
        let hint = headstart_scenario::nearest(name, &known);
        let hint = hint.map(|near| format!("did you mean {near}? "));
        format!("{}known are {}", hint.unwrap_or_default(), known.join(", "))
    })
}

/// A trace in mahimahi's format.
fn read_trace(file: &Path) -> anyhow::Result<RateSpec> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read the trace {name}"))?;
    Ok(RateSpec::Trace(Trace::parse(&name, &text)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        path: PathArgs,
    }

    fn config(arguments: &str) -> PathConfig {
        let arguments = ["path"]
            .into_iter()
            .chain(arguments.split(' '))
            .chain(["--", "true"]);
        Only::try_parse_from(arguments)
            .unwrap()
            .path
            .config()
            .unwrap()
    }

    #[test]
    fn the_reverse_direction_is_as_the_forward_one_unless_it_is_told_otherwise() {
        let path = config("--rate 12mbit --rtt 400ms");
        let (forward, mut reverse) = (path.forward.clone(), path.reverse);
        reverse.seed = forward.seed;
        assert_eq!(reverse, forward);
        assert_eq!(path.forward.queue.to_string(), "drop-tail:400");
        assert_eq!(path.forward.delay.to_string(), "200ms");
        let path =
            config("--rate 12mbit --reverse-rate 1mbit --rtt 0ms --reverse-queue drop-tail:5");
        assert_eq!(path.reverse.rate.to_string(), "1mbit");
        assert_eq!(path.reverse.queue.to_string(), "drop-tail:5");
        assert_eq!(path.forward.queue.to_string(), "drop-tail:10");
    }

    #[test]
    fn impairments_are_of_the_direction_that_they_name_and_the_directions_draw_apart() {
        let path = config("--rate 12mbit --rtt 400ms --loss 1% --reverse-jitter 5ms --seed 7");
        assert_eq!(path.forward.loss.as_ref().unwrap().to_string(), "1%");
        assert_eq!((path.forward.jitter, &path.reverse.loss), (None, &None));
        assert_eq!(path.reverse.jitter.unwrap().to_string(), "5ms");
        assert_ne!(path.forward.seed, path.reverse.seed);
    }

    #[test]
    fn the_code_point_given_is_that_of_every_queue_with_priority_drop() {
        let options = "--rate 12mbit --rtt 400ms --queue priority:1bdp --reverse-queue red:50";
        let path = config(&format!("{options} --priority-dscp 8"));
        assert_eq!(path.forward.queue.to_string(), "priority:1bdp,dscp=8");
        assert_eq!(path.reverse.queue.to_string(), "red:50,min=5,max=15");
        let path = config(options);
        assert_eq!(path.forward.queue.low_priority_dscp(), Some(1));
    }

    #[test]
    fn a_trace_stands_in_place_of_a_rate() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "1\n2\n").unwrap();
        let name = file.path().to_str().unwrap();
        let path = config(&format!(
            "--rate-trace {name} --rtt 100ms --reverse-rate 1mbit"
        ));
        assert_eq!(path.forward.rate.to_string(), format!("trace {name}"));
        assert_eq!(path.forward.queue.to_string(), "drop-tail:101");
        assert_eq!(path.reverse.rate.to_string(), "1mbit");
        fs::write(file.path(), "2\n1\n").unwrap();
        let arguments = ["path", "--rate-trace", name, "--rtt", "1ms", "--", "true"];
        let wrong = Only::try_parse_from(arguments).unwrap().path.config();
        let said = wrong.unwrap_err().to_string();
        assert!(
            said.contains(&format!("{name}:2: 1 is earlier than 2")),
            "{said}"
        );
    }

    #[test]
    fn a_preset_is_a_whole_path_and_options_beside_it_stand_in_its_place() {
        let path = config("--preset docsis --rtt 80ms");
        assert_eq!(path.forward.rate.to_string(), "10mbit");
        assert!(path.reverse.rate.to_string().starts_with("docsis:384kbit"));
        assert_eq!(path.reverse.queue.to_string(), "drop-tail:50");
        assert_eq!(path.forward.rtt.to_string(), "80ms");
        let arguments = ["path", "--preset", "wify", "--", "true"];
        let said = Only::try_parse_from(arguments).err().unwrap().to_string();
        assert!(said.contains("did you mean wifi?"), "{said}");
    }

    #[test]
    fn the_delay_of_a_flow_is_drawn_from_the_same_seed_in_both_directions() {
        let delays = "--flow-delay exp:10ms --reverse-flow-delay uniform:0ms,5ms --seed 7";
        let path = config(&format!("--rate 12mbit --rtt 40ms {delays}"));
        assert_eq!(path.forward.flow_delay.unwrap().to_string(), "exp:10ms");
        assert!(path.reverse.flow_delay.is_some());
        assert_eq!(path.forward.flow_seed, path.reverse.flow_seed);
    }

    #[test]
    fn an_odd_round_trip_time_loses_no_nanosecond() {
        let path = config("--rate 12mbit --rtt 3ns");
        assert_eq!(
            (path.forward.delay.as_ns(), path.reverse.delay.as_ns()),
            (2, 1)
        );
    }
}
