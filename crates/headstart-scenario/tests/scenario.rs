//! Reading scenario files that are in order.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::path::Path;

use headstart_link::{LinkConfig, QueueSpec, Span};
use headstart_scenario::{ByteSize, Case, CaseKind, Client, Scenario, Server};

const SHORT: &str = r#"
name = "short"
[path]
rate = "12mbit"
rtt = "401ns"
queue = "drop-tail:400"
[compare]
startups = ["su_fast_start", "cubic"]
repeat = 1
[[case]]
kind = "new-cold"
bytes = 51200
"#;

fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

#[test]
fn the_satellite_scenario_that_ships_is_the_one_of_the_demo() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/satellite.toml");
    let scenario = Scenario::load(&path).unwrap();
    assert_eq!(scenario.name, "satellite");
    assert_eq!(scenario.path.forward.rate.to_string(), "12mbit");
    assert_eq!(scenario.path.reverse.rate.to_string(), "1mbit");
    assert_eq!(scenario.path.rtt(), ms(400));
    assert_eq!(scenario.path.forward.delay, ms(200));
    assert_eq!(scenario.path.forward.queue, QueueSpec::drop_tail(400));
    let startups: Vec<_> = scenario
        .compare
        .startups
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(startups, ["cubic", "bbr", "su_standard", "su_fast_start"]);
    assert_eq!(scenario.compare.repeat, 10);
    let bytes = ByteSize::from_bytes(51_200);
    let warm_bytes = ByteSize::from_bytes(2_000_000);
    assert_eq!(
        scenario.cases,
        [
            Case::NewCold { bytes },
            Case::ResumeWarm {
                bytes,
                warm_bytes,
                idle: ms(10_000)
            },
            Case::NewWarm { bytes, warm_bytes },
        ]
    );
    assert!(scenario.parameters.is_empty());
}

#[test]
fn every_scenario_that_ships_is_in_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    assert!(files.len() >= 4);
    for file in files {
        let scenario = Scenario::load(&file).unwrap();
        assert_eq!(
            file.file_stem().unwrap().to_str(),
            Some(scenario.name.as_str())
        );
    }
}

#[test]
fn the_way_back_is_as_the_way_there_unless_it_is_given() {
    let scenario = Scenario::parse("short.toml", SHORT).unwrap();
    assert_eq!(scenario.path.reverse.rate, scenario.path.forward.rate);
    assert_eq!(scenario.path.reverse.queue, scenario.path.forward.queue);
    assert_eq!(scenario.transfer.server, Server::Nginx);
    assert_eq!(scenario.transfer.client, Client::Curl);
    assert_eq!(scenario.seed, 1);
    assert_eq!(scenario.description, "");
}

#[test]
fn an_odd_round_trip_time_is_split_without_losing_a_nanosecond() {
    let path = Scenario::parse("short.toml", SHORT).unwrap().path;
    assert_eq!(
        (path.forward.delay.as_ns(), path.reverse.delay.as_ns()),
        (200, 201)
    );
    assert_eq!(path.rtt().as_ns(), 401);
}

#[test]
fn the_delays_can_be_given_for_each_direction() {
    let text = SHORT.replace(
        "rtt = \"401ns\"",
        "delay = \"10ms\"\nreverse_delay = \"90ms\"",
    );
    let path = Scenario::parse("short.toml", &text).unwrap().path;
    assert_eq!((path.forward.delay, path.reverse.delay), (ms(10), ms(90)));
}

#[test]
fn the_source_is_kept_byte_for_byte() {
    let windows = SHORT.replace('\n', "\r\n");
    let scenario = Scenario::parse("short.toml", &windows).unwrap();
    assert_eq!(scenario.source(), windows);
    assert_eq!(scenario.file(), "short.toml");
}

#[test]
fn parameters_keep_their_line_and_the_order_of_the_file() {
    let tables = "[startup.su_fast_start]\nquick_recovery = 0\nmaxburst = 0x8\n";
    let scenario = Scenario::parse("short.toml", &format!("{SHORT}{tables}")).unwrap();
    let rows: Vec<_> = scenario
        .parameters_of("su_fast_start")
        .map(|parameter| (parameter.name.as_str(), parameter.value, parameter.line))
        .collect();
    assert_eq!(rows, [("quick_recovery", 0, 14), ("maxburst", 8, 15)]);
    assert_eq!(scenario.parameters_of("cubic").count(), 0);
}

#[test]
fn a_table_may_be_written_inline_or_with_dots() {
    let inline = r#"
name = "inline"
path = { rate = "1mbit", rtt = "10ms", queue = "drop-tail:5" }
compare.startups = ["cubic"]
compare.repeat = 2
case = [{ kind = "new-cold", bytes = "1KiB" }]
"#;
    let scenario = Scenario::parse("inline.toml", inline).unwrap();
    assert_eq!(scenario.cases[0].kind(), CaseKind::NewCold);
    assert_eq!(scenario.compare.repeat, 2);
}

const PATH: &str = r#"rate = "12mbit"
rtt = "401ns"
queue = "drop-tail:400""#;

/// The short scenario with this table in place of its own.
fn with_path(path: &str) -> Scenario {
    let text = SHORT.replace(PATH, path);
    Scenario::parse("short.toml", &text).unwrap()
}

#[test]
fn everything_that_a_link_can_do_has_a_key_in_the_words_of_the_command_line() {
    let path = with_path(
        r#"
rate = "12mbit@0s,1mbit@10s,repeat@20s"
reverse_rate = "docsis:384kbit"
rtt = "40ms"
queue = "priority-red:50,min=5,max=15,gentle"
reverse_queue = "fq-codel"
priority_dscp = 8
loss = "gilbert-elliott:p=1%,r=25%"
jitter = "5ms,unordered"
flow_delay = "lognormal:10ms,0.5"
reorder = "1%,by=10ms"
duplicate = "0.1%"
reverse_loss = "packets:3,5"
reverse_jitter = "1ms"
reverse_flow_delay = "exp:10ms"
reverse_reorder = "2%,by=1ms"
reverse_duplicate = "1%"
"#,
    )
    .path;
    let (forward, reverse) = path.seeded(7);
    assert_eq!(forward.rate.fastest().to_string(), "12mbit");
    assert_eq!(reverse.rate.to_string(), "docsis:384kbit");
    assert_eq!(forward.queue.low_priority_dscp(), Some(8));
    assert_eq!(forward.rtt, ms(40));
    let texts = |link: &LinkConfig| {
        [
            link.loss.as_ref().map(ToString::to_string),
            link.jitter.map(|jitter| jitter.to_string()),
            link.flow_delay.as_ref().map(ToString::to_string),
            link.reorder.map(|reorder| reorder.to_string()),
            link.duplicate.map(|duplicate| duplicate.to_string()),
        ]
        .map(Option::unwrap)
    };
    assert_eq!(
        texts(&forward),
        [
            "gilbert-elliott:p=1%,r=25%",
            "5ms,unordered",
            "lognormal:10ms,0.5",
            "1%,by=10ms",
            "0.1%"
        ]
    );
    assert_eq!(
        texts(&reverse),
        ["packets:3,5", "1ms", "exp:10ms", "2%,by=1ms", "1%"]
    );
    assert_ne!(forward.seed, reverse.seed, "the directions draw apart");
    assert_eq!(
        forward.flow_seed, reverse.flow_seed,
        "but for a flow's delay"
    );
}

#[test]
fn a_preset_is_a_whole_path_and_what_is_given_beside_it_stands_in_its_place() {
    let path = with_path("preset = \"directpc\"").path;
    assert_eq!(path.forward.rate.to_string(), "12mbit");
    assert_eq!(path.reverse.rate.to_string(), "28.8kbit");
    assert_eq!(path.rtt(), ms(400));
    assert_eq!(path.reverse.queue, QueueSpec::drop_tail(20));
    let path = with_path(
        "preset = \"directpc\"\nreverse_rate = \"1mbit\"\ndelay = \"250ms\"\n\
         reverse_delay = \"20ms\"\nqueue = \"red:1bdp\"",
    )
    .path;
    assert_eq!(path.reverse.rate.to_string(), "1mbit");
    assert_eq!(path.rtt(), ms(270));
    assert_eq!(path.forward.queue.to_string(), "red:1bdp,min=5,max=15");
    assert_eq!(path.reverse.queue, QueueSpec::drop_tail(20));
}

#[test]
fn files_are_named_from_where_the_scenario_is() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("traces")).unwrap();
    std::fs::write(dir.path().join("traces/lte.down"), "1\n2\n").unwrap();
    std::fs::write(dir.path().join("delays.csv"), "10ms,0.5\n50ms,1\n").unwrap();
    let text = SHORT.replace(
        PATH,
        "rate_trace = \"traces/lte.down\"\nreverse_rate = \"1mbit\"\nrtt = \"10ms\"\n\
         queue = \"drop-tail:9\"\nflow_delay = \"empirical:delays.csv\"",
    );
    let file = dir.path().join("s.toml");
    std::fs::write(&file, &text).unwrap();
    let path = Scenario::load(&file).unwrap().path;
    assert_eq!(path.forward.rate.to_string(), "trace traces/lte.down");
    assert_eq!(
        path.forward.flow_delay.unwrap().to_string(),
        "empirical:delays.csv"
    );
    std::fs::write(dir.path().join("traces/lte.down"), "2\n1\n").unwrap();
    let said = Scenario::load(&file).unwrap_err().to_string();
    assert!(
        said.contains("s.toml:4: \"rate_trace\" in [path]: traces/lte.down:2:"),
        "{said}"
    );
}

const PATHS: &str = r#"
name = "matrix"
[[path]]
name = "slow"
rate = "1.5mbit"
rtt = "100ms"
queue = "drop-tail:1bdp"
[[path]]
name = "fast"
rate = "100mbit"
rtt = "102ms"
queue = "drop-tail:0.2bdp"
[compare]
startups = ["cubic", "su_standard", "su_standard{hystart=0;iw_pkts=4}"]
repeat = 1
limit_s = 15
details = false
[[case]]
kind = "new-cold"
sizes = ["10kB", "10MB"]
[[case]]
kind = "new-warm"
bytes = "1MB"
warm_bytes = "4bdp"
"#;

#[test]
fn a_scenario_of_several_paths_is_one_of_one_path_for_each() {
    let each = Scenario::parse("m.toml", PATHS).unwrap().on_each_path();
    let names: Vec<_> = each.iter().map(|one| one.path_name.as_deref()).collect();
    assert_eq!(names, [Some("slow"), Some("fast")]);
    assert!(each.iter().all(|one| !one.has_several_paths()));
    assert_eq!(each[1].path.rtt(), ms(102));
    // 1.5 Mbit/s for 100 ms, and 100 Mbit/s for 102 ms, four times.
    let warm = |one: &Scenario| one.cases.last().and_then(|case| case.warm_bytes());
    assert_eq!(warm(&each[0]), Some(ByteSize::from_bytes(4 * 18_750)));
    assert_eq!(warm(&each[1]), Some(ByteSize::from_bytes(4 * 1_275_000)));
}

#[test]
fn what_a_path_takes_too_long_for_is_left_out_and_told() {
    let each = Scenario::parse("m.toml", PATHS).unwrap().on_each_path();
    let sizes = |cases: &[Case]| {
        cases
            .iter()
            .map(|case| case.bytes().bytes())
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(&each[0].cases), [10_000, 1_000_000]);
    assert_eq!(sizes(&each[0].left_out), [10_000_000]);
    assert_eq!(sizes(&each[1].cases), [10_000, 10_000_000, 1_000_000]);
    assert!(each[1].left_out.is_empty());
}

#[test]
fn a_start_up_can_stand_twice_with_parameters_of_its_own() {
    let scenario = Scenario::parse("m.toml", PATHS).unwrap();
    let listed = &scenario.compare.startups[2];
    assert_eq!(listed.name, "su_standard{hystart=0;iw_pkts=4}");
    assert_eq!(listed.startup, "su_standard");
    assert_eq!(
        listed.settings,
        ["su_standard.hystart=0", "su_standard.iw_pkts=4"]
    );
    assert!(!scenario.compare.details);
}
