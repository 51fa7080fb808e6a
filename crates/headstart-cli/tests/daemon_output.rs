//! What leaves the daemon: files to a bucket, metrics to whoever scrapes them.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

#[path = "../../headstart-daemon/tests/support/s3.rs"]
mod s3;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use headstart_path::{Emulation, Namespace};
use nix::sys::signal::Signal;
use support::stage::*;
use support::*;

/// Runs the S3 server's client in the daemon's network namespace, where loopback is another.
fn rows_in_bucket(server: &s3::Server) -> i64 {
    let dir = tempfile::tempdir().unwrap();
    for (number, name) in server.objects().iter().enumerate() {
        let file = dir.path().join(format!("{number}.parquet"));
        fs::write(file, server.object(name)).unwrap();
    }
    rows_in(dir.path())
}

/// The bucket is gone, the daemon is killed with closed files that wait, and both come back.
#[test]
fn records_reach_a_bucket_that_comes_after_a_kill() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let Some(program) = s3::program() else { return };
    let at = s3::nobody();
    let bucket = format!(
        "[records]\nrotate = \"1s\"\n[records.bucket]\nurl = \"s3://{}/e2e\"\n",
        s3::BUCKET
    );
    let mut stage = Stage::new(&(bucket + WEB));
    stage.env = vec![
        ("AWS_ACCESS_KEY_ID", "somebody".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "nothing".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://{at}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    stage.start();
    let mut pair = stage.connect();
    for round in 1..=3 {
        Stage::transfer(&mut pair, 20_000);
        let closed = || stage.status()["records"]["bucket"]["waiting_files"] == round;
        assert!(eventually(closed), "{}", stage.status());
    }
    assert!(eventually(|| {
        stage.status()["records"]["bucket"]["failures"] != 0
    }));
    let told = stage.told("status", &[]).unwrap();
    assert!(
        told.contains("UPLOADS FAIL") && told.contains("3 waiting"),
        "{told}"
    );
    stage.end(Signal::SIGKILL);
    if !has_struct_ops_links() {
        headstart(&["doctor", "--clean"]).status().unwrap();
    }
    assert!(eventually(|| registered().is_empty()));

    let server = stage
        .path
        .server()
        .run(|| s3::Server::start(&program, at, false))
        .unwrap();
    stage.start();
    let uploaded = || stage.status()["records"]["bucket"]["uploaded_files"] == 3;
    assert!(eventually(uploaded), "{}", stage.status());
    // What is closed at the end goes with the end.
    Stage::transfer(&mut stage.connect(), 20_000);
    assert!(eventually(|| stage.status()["records"]["recorded"] == 1));
    assert!(stage.end(Signal::SIGTERM).success());
    let rows = stage.path.server().run(|| rows_in_bucket(&server)).unwrap();
    assert_eq!(rows, 4, "{}", stage.log());
    assert_eq!(rows_in(&stage.records()), 0);
}

fn scrape(host: &Namespace, at: SocketAddr) -> (String, String) {
    let answer = host
        .run(|| {
            let mut stream = TcpStream::connect(at).unwrap();
            let request = format!("GET /metrics HTTP/1.0\r\nHost: {at}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        })
        .unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[derive(Default)]
struct Family {
    kind: String,
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

fn is_name(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == ':')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// `a="x",b="y"` with the format's three escapes.
fn labels_of(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(is_name(name), "{name}");
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => match chars.next().unwrap().1 {
                    'n' => value.push('\n'),
                    c @ ('"' | '\\') => value.push(c),
                    c => panic!("\\{c} is no escape"),
                },
                (_, c) => value.push(c),
            }
        };
        assert!(
            labels.insert(name.to_owned(), value).is_none(),
            "{name} twice"
        );
        text = &rest[end + 1..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
    labels
}

/// The text format 0.0.4 as Prometheus documents it: HELP and TYPE once before the samples of a family, which stand
/// together; each line ends; a sample is a name, labels and a number, and occurs once.
fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n'));
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(is_name(name) && !words.trim().is_empty(), "{line}");
            let before = families.insert(name.to_owned(), Family::default());
            assert!(before.is_none(), "{name} twice");
            current = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, current);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = families.get_mut(name).unwrap();
            assert!(family.kind.is_empty() && family.samples.is_empty());
            family.kind = kind.to_owned();
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = match sample.split_once('{') {
                Some((name, rest)) => (name, labels_of(rest.strip_suffix('}').unwrap())),
                None => (sample, BTreeMap::new()),
            };
            let family = families.get_mut(&current).unwrap();
            let of_family = match family.kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|end| name.strip_suffix(end) == Some(&current)),
                _ => name == current,
            };
            assert!(of_family, "{name} in {current}");
            assert!(seen.insert(sample.to_owned()), "{sample} twice");
            family
                .samples
                .push((name.to_owned(), labels, value.parse().unwrap()));
        }
    }
    families
}

fn check_histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (sample, labels, value) in &family.samples {
        let mut labels = labels.clone();
        let le = labels.remove("le").map(|le| le.parse::<f64>().unwrap());
        match le {
            Some(le) => series.entry(labels).or_default().push((le, *value)),
            None if *sample == format!("{name}_count") => drop(counts.insert(labels, *value)),
            None => assert!(*value >= 0.0),
        }
    }
    assert!(!series.is_empty());
    for (labels, buckets) in series {
        for pair in buckets.windows(2) {
            assert!(
                pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1,
                "{labels:?}"
            );
        }
        let last = buckets.last().unwrap();
        assert!(last.0.is_infinite());
        assert_eq!(Some(&last.1), counts.get(&labels));
    }
}

/// The names that begin with `headstart_` in a file that ships.
fn named_in(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("headstart_"))
        .map(str::to_owned)
        .collect()
}

fn value_of(families: &BTreeMap<String, Family>, name: &str, rule: &str) -> f64 {
    let samples = families[name].samples.iter();
    let of_rule = |labels: &BTreeMap<String, String>| labels.get("rule").is_some_and(|r| r == rule);
    samples
        .filter(|(_, labels, _)| of_rule(labels))
        .map(|(_, _, value)| value)
        .sum()
}

#[test]
fn the_metrics_are_in_the_text_format_and_have_all_that_the_dashboard_and_the_alerts_ask_for() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let at: SocketAddr = "127.0.0.1:9870".parse().unwrap();
    // Nobody listens at port 1: the metrics of bucket and site are there, and say that they fail.
    let rules = format!(
        "[records]\nrotate = \"1s\"\n[records.bucket]\nurl = \"s3://logs\"\n\
         options = {{ endpoint = \"http://127.0.0.1:1\", allow_http = \"true\", aws_access_key_id = \"a\", \
         aws_secret_access_key = \"b\" }}\n[memory]\nurl = \"redis://127.0.0.1:1/0\"\n[metrics]\nlisten = \"{at}\"\n\
         [[rule]]\nname = 'a \"quoted\" \\name'\nports = \"1\"\nstartup = \"leave-alone\"\n{WEB}"
    );
    let mut stage = Stage::new(&rules);
    stage.start();
    let mut pair = stage.connect();
    Stage::transfer(&mut pair, 100_000);
    let failed = || stage.status()["records"]["bucket"]["failures"] != 0;
    assert!(eventually(failed), "{}", stage.status());

    let (head, text) = scrape(stage.path.server(), at);
    assert!(
        head.starts_with("HTTP/1.") && head.contains(" 200 "),
        "{head}"
    );
    assert!(
        head.to_ascii_lowercase()
            .contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    let families = parse(&text);
    for (name, family) in &families {
        assert!(!family.samples.is_empty(), "{name} has no sample");
        match family.kind.as_str() {
            "histogram" => check_histogram(name, family),
            // The conventions of the format for names.
            "counter" => assert!(name.ends_with("_total"), "{name}"),
            _ => assert!(!name.ends_with("_total"), "{name}"),
        }
    }
    assert_eq!(value_of(&families, "headstart_transfers_total", "web"), 1.0);
    assert_eq!(
        value_of(&families, "headstart_transfer_bytes_total", "web"),
        100_000.0
    );
    assert_eq!(
        value_of(&families, "headstart_rule_off", "a \"quoted\" \\name"),
        0.0
    );
    assert_eq!(families["headstart_bucket_failing"].samples[0].2, 1.0);

    let shipped = [
        include_str!("../../../packaging/grafana-dashboard.json"),
        include_str!("../../../packaging/prometheus-alerts.yml"),
    ];
    let there: BTreeSet<&str> = families
        .values()
        .flat_map(|family| family.samples.iter().map(|(name, _, _)| name.as_str()))
        .collect();
    for name in shipped.iter().flat_map(|text| named_in(text)) {
        assert!(there.contains(name.as_str()), "{name} is not served");
    }

    stage.told("off", &["--rule", "web"]).unwrap();
    let families = parse(&scrape(stage.path.server(), at).1);
    assert_eq!(value_of(&families, "headstart_rule_off", "web"), 1.0);

    // On loopback alone: not at the address that others reach.
    let elsewhere = SocketAddr::new(stage.path.server().addr_v4().into(), at.port());
    assert_refused(&stage.path, elsewhere);
    assert!(stage.end(Signal::SIGTERM).success());
}

fn assert_refused(path: &Emulation, at: SocketAddr) {
    for host in [path.server(), path.client()] {
        let tried = host.run(|| TcpStream::connect(at)).unwrap();
        let error = tried.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}
