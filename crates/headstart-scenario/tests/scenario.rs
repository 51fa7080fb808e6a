//! Reading scenario files that are in order.

use std::path::Path;

use headstart_link::{QueueSpec, Span};
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
    assert_eq!(scenario.path.rate.bits_per_s(), 12_000_000);
    assert_eq!(scenario.path.reverse_rate.bits_per_s(), 1_000_000);
    assert_eq!(scenario.path.rtt(), ms(400));
    assert_eq!(scenario.path.forward().delay, ms(200));
    assert_eq!(scenario.path.queue, QueueSpec::drop_tail(400));
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
fn the_way_back_is_as_the_way_there_unless_it_is_given() {
    let scenario = Scenario::parse("short.toml", SHORT).unwrap();
    assert_eq!(scenario.path.reverse_rate, scenario.path.rate);
    assert_eq!(scenario.path.reverse_queue, scenario.path.queue);
    assert_eq!(scenario.transfer.server, Server::Nginx);
    assert_eq!(scenario.transfer.client, Client::Curl);
    assert_eq!(scenario.seed, 1);
    assert_eq!(scenario.description, "");
}

#[test]
fn an_odd_round_trip_time_is_split_without_losing_a_nanosecond() {
    let path = Scenario::parse("short.toml", SHORT).unwrap().path;
    assert_eq!((path.delay.as_ns(), path.reverse_delay.as_ns()), (200, 201));
    assert_eq!(path.rtt().as_ns(), 401);
}

#[test]
fn the_delays_can_be_given_for_each_direction() {
    let text = SHORT.replace(
        "rtt = \"401ns\"",
        "delay = \"10ms\"\nreverse_delay = \"90ms\"",
    );
    let path = Scenario::parse("short.toml", &text).unwrap().path;
    assert_eq!(
        (path.forward().delay, path.reverse().delay),
        (ms(10), ms(90))
    );
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
