//! `headstart run` and the verbs that talk to it, as an operator meets them: over an emulated path, with a server in
//! a cgroup.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use support::stage::*;
use support::*;

#[test]
fn a_daemon_from_its_start_to_its_end() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut stage = Stage::new(WEB);
    stage.start();

    // It goes on with three capabilities, and nobody but root may ask it.
    let of_process = fs::read_to_string(format!("/proc/{}/status", stage.pid())).unwrap();
    let permitted = of_process
        .lines()
        .find_map(|line| line.strip_prefix("CapPrm:"))
        .unwrap();
    let permitted = u64::from_str_radix(permitted.trim(), 16).unwrap();
    assert_eq!(
        permitted,
        1 << 12 | 1 << 38 | 1 << 39,
        "NET_ADMIN, PERFMON, BPF"
    );
    let socket = stage.dir.path().join("run/control.sock");
    assert_eq!(
        fs::metadata(socket).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let mut pair = stage.connect();
    assert_eq!(control(&pair.1), "su_standard");
    Stage::transfer(&mut pair, 100_000);
    assert!(eventually(|| stage.status()["records"]["written"] == 1));
    let status = stage.status();
    assert_eq!(status["rules"][0]["matched"], 1);
    assert_eq!(status["live_connections"], 1);
    assert!(
        stage
            .told("top", &["--once"])
            .unwrap()
            .contains("web / all")
    );
    let explained = stage
        .told("explain", &["10.77.8.2", "--port", "8080"])
        .unwrap();
    assert!(
        explained.contains("rule web, arm all: su_standard"),
        "{explained}"
    );
    let explained = stage
        .told("explain", &["10.77.8.2", "--port", "22"])
        .unwrap();
    assert!(explained.contains("no rule matches"), "{explained}");

    // A reload leaves the open connection alone; a bad one leaves all as it was.
    stage.configure(&WEB.replace("su_standard", "su_fast_start"));
    stage.told("reload", &[]).unwrap();
    assert_eq!(control(&pair.1), "su_standard");
    let second = stage.connect();
    assert_eq!(control(&second.1), "su_fast_start");
    stage.configure(&WEB.replace("su_standard", "su_stand"));
    let refused = stage.told("reload", &[]).unwrap_err();
    assert!(
        refused.contains("headstart.toml:8:") && refused.contains("did you mean"),
        "{refused}"
    );
    assert_eq!(control(&stage.connect().1), "su_fast_start");

    // Off is for those that live as well, until told.
    let off = stage.told("off", &[]).unwrap();
    assert!(off.contains("connections moved back"), "{off}");
    assert!(!control(&pair.1).starts_with("su_"));
    assert!(!control(&stage.connect().1).starts_with("su_"));
    assert_eq!(stage.status()["rules"][0]["state"], "off");
    Stage::transfer(&mut pair, 100_000);
    stage.told("on", &[]).unwrap();
    assert_eq!(control(&stage.connect().1), "su_fast_start");

    // The last ACK may still be on its way.
    assert!(eventually(|| stage.status()["records"]["recorded"] == 2));
    assert!(stage.end(Signal::SIGTERM).success());
    assert_eq!(rows_in(&stage.records()), 2);
    assert!(eventually(|| registered().is_empty()));
    let nobody = stage.told("status", &[]).unwrap_err();
    assert!(nobody.contains("no daemon answers"), "{nobody}");
}

#[test]
fn after_a_kill_connections_live_on_and_what_was_recorded_is_in_a_file_after_the_next_start() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut stage = Stage::new(WEB);
    stage.start();
    let mut pair = stage.connect_and_record(5);
    stage.end(Signal::SIGKILL);
    Stage::transfer(&mut pair, 200_000);
    assert_eq!(rows_in(&stage.records()), 0);
    if !has_struct_ops_links() {
        headstart(&["doctor", "--clean"]).status().unwrap();
    }
    assert!(eventually(|| registered().is_empty()));
    stage.start();
    assert_eq!(rows_in(&stage.records()), 5);
    Stage::transfer(&mut stage.connect(), 20_000);
    assert!(eventually(|| stage.status()["records"]["recorded"] == 1));
    assert!(stage.end(Signal::SIGTERM).success());
    assert_eq!(rows_in(&stage.records()), 6);
}

/// The arm that does harm begins with the largest window over a path that holds 10 packets: it loses, and waits.
#[test]
fn the_guard_turns_a_rule_off_that_does_harm_and_it_stays_off_until_told() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let harmful = "[guard]\nholdout_percent = 50\nwindow = \"60s\"\nmin_transfers = 5\nretransmission_points = 3\n\
                   [[rule]]\nname = \"web\"\nstartup = \"su_standard\"\nparams = { iw_pkts = 100 }\n";
    let mut stage = Stage::new(harmful);
    many_clients(&stage);
    stage.start();
    let tripped = load_until_off(&stage);
    assert!(tripped, "{}", stage.told("status", &[]).unwrap());
    assert!(
        stage
            .log()
            .contains("the guard turned the rule web off: retransmitted")
    );
    stage.end(Signal::SIGTERM);
    stage.start();
    assert_eq!(stage.status()["rules"][0]["state"], "off");
    stage.told("on", &["--rule", "web"]).unwrap();
    assert_eq!(stage.status()["rules"][0]["state"], "active");
}
