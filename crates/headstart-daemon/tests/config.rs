//! The configuration: what is taken, and how it is refused.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::time::Duration;

use headstart_daemon::{Action, Config, RuleAction, Unit};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Config, String> {
    let controls = ["cubic".to_owned(), "bbr".to_owned(), "reno".to_owned()];
    Config::parse("headstart.toml", text, &controls).map_err(|error| error.to_string())
}

#[test]
fn the_example_that_ships_is_good() {
    let text = include_str!("../../../packaging/headstart.toml");
    let config = parse(text).unwrap();
    assert_eq!(config.rules.len(), 3);
    assert_eq!(config.rules[1].ports, (443, 443));
    let RuleAction::One(Action::Startup(params)) = &config.rules[1].action else {
        panic!("{:?}", config.rules[1]);
    };
    assert_eq!(params.get("maxburst_pkts"), Some(4));
    // What stands there commented out is good as well.
    let uncommented: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .filter(|line| {
            let key = line.split(['=', '#']).next().unwrap_or_default().trim();
            line.starts_with('[') || (line.contains('=') && !key.contains(' '))
        })
        .collect();
    let all = parse(&uncommented.join("\n")).unwrap();
    let experiment = all.experiment.unwrap();
    assert_eq!((experiment.arms.len(), experiment.baseline), (2, 0));
    assert!(experiment.stop.unwrap().latency_percent.is_some() && experiment.until_us.is_some());
    assert!(all.cgroup.is_some() && all.rules[1].cap_pkts.is_some());
    let bucket = all.records.bucket.unwrap();
    assert_eq!(bucket.options["region"], "eu-central-1");
    assert_eq!(bucket.backlog_bytes, 8 << 30);
}

#[test]
fn an_empty_file_does_nothing_at_all() {
    let config = parse("").unwrap();
    assert!(config.rules.is_empty() && config.guard.is_none() && config.metrics.is_none());
}

fn experiment(more: &str) -> String {
    format!(
        "[experiment]\nname = \"x\"\nsalt = \"y\"\n{more}\n\
         [[experiment.arm]]\nname = \"a\"\nshare_percent = 50\nstartup = \"cubic\"\n\
         [[experiment.arm]]\nname = \"b\"\nshare_percent = 50\nstartup = \"bbr\"\n"
    )
}

#[test]
fn an_experiment_is_by_prefix_unless_it_says_otherwise() {
    let unit = |more: &str| parse(&experiment(more)).unwrap().experiment.unwrap().unit;
    assert_eq!(unit(""), Unit::Prefix);
    assert_eq!(unit("unit = \"prefix\""), Unit::Prefix);
    assert_eq!(unit("unit = \"connection\""), Unit::Connection);
    let by_time = Unit::Time {
        slice: Duration::from_secs(600),
        burn_in: Duration::from_secs(60),
    };
    let text = "unit = \"time\"\nslice = \"600s\"\nburn_in = \"60s\"";
    assert_eq!(unit(text), by_time);
    let until = experiment("until = \"1970-01-02T00:00:00Z\"");
    let until = parse(&until).unwrap().experiment.unwrap().until_us;
    assert_eq!(until, Some(86_400_000_000));
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_to_write() {
    let rule = "[[rule]]\nname = \"a\"\n";
    let refusals: [(String, &str); 28] = [
        ("[rules]".into(), "headstart.toml:1: unknown key \"rules\" at the top level; did you mean \"rule\"?"),
        (format!("{rule}startup = \"su_fast_strat\""), "headstart.toml:3: start-up \"su_fast_strat\" in [[rule]] is not known; did you mean \"su_fast_start\"?"),
        (format!("{rule}startup = \"su_fast_strat\"\nparams = {{ a = 1 }}"), "headstart.toml:3: start-up"),
        (format!("{rule}startup = \"cubic\"\nparams = {{ a = 1 }}"), "headstart.toml:4: \"params\" in [[rule]]: cubic has no parameters"),
        (format!("{rule}startup = \"su_standard\"\nparams = {{ iw_pkts = 0 }}"), "must be 1 to 100 pkts (got 0)"),
        (format!("{rule}startup = \"su_standard\"\nparams = {{ reno = 1 }}"), "cannot be a rule's"),
        (format!("{rule}startup = \"experiment\""), "there is no [experiment]"),
        (format!("{rule}startup = \"cubic\"\nports = \"80-79\""), "headstart.toml:4: \"ports\" in [[rule]]: \"80-79\" is no port"),
        (format!("{rule}startup = \"cubic\"\ndestination = \"10.0.0.0/33\""), "is no prefix"),
        (format!("{rule}startup = \"cubic\"\n{rule}startup = \"cubic\""), "is the name of a rule already (line 1)"),
        (format!("{rule}startup = \"cubic\"\nrecords = 1"), "has to be true or false"),
        ("[metrics]\nlisten = \"0.0.0.0:9870\"".into(), "headstart.toml:2: \"listen\" in [metrics]: 0.0.0.0 is no loopback address"),
        ("[records]\nsample_percent = 101".into(), "give a whole number from 0 to 100"),
        ("[records]\ndir = \"s3://bucket/x\"".into(), "files are written here first"),
        ("[records.bucket]\nkeep = true".into(), "\"url\" is missing in [records.bucket]"),
        ("[records.bucket]\nurl = \"file:///tmp\"".into(), "headstart.toml:2: \"url\" in [records.bucket]"),
        ("[records.bucket]\nurl = \"s3://x\"\noptions = { regoin = \"a\" }".into(), "headstart.toml:3: \"options\" in [records.bucket]: the option \"regoin\" is not known"),
        ("[records.bucket]\nurl = \"s3://x\"\noptions = { region = 1 }".into(), "has to be"),
        ("[guard]\nholdout_percent = 5\nwindow = \"0s\"".into(), "give 1 s to 86400 s"),
        ("[experiment]\nname = \"x\"\nsalt = \"y\"\n[[experiment.arm]]\nname = \"a\"\nshare_percent = 50\nstartup = \"cubic\"\n[[experiment.arm]]\nname = \"b\"\nshare_percent = 40\nstartup = \"bbr\"".into(), "the shares sum to 90 percent"),
        (experiment("unit = \"person\""), "unit \"person\" in [experiment] is not known"),
        (experiment("slice = \"60s\""), "it is for slices of time"),
        (experiment("unit = \"time\"\nslice = \"60s\""), "\"burn_in\" is missing in [experiment]"),
        (experiment("unit = \"time\"\nslice = \"60s\"\nburn_in = \"60s\""), "nothing would be left"),
        (experiment("unit = \"time\"\nslice = \"60s\"\nburn_in = \"5s\"\nstop = { window = \"120s\" }"), "four slices at least"),
        (experiment("baseline = \"c\""), "no arm is called \"c\"; there are a, b"),
        (experiment("until = \"tomorrow\""), "is no point in time"),
        ("[daemon".into(), "headstart.toml:1: not TOML"),
    ];
    for (text, words) in refusals {
        let refused = parse(&text).unwrap_err();
        assert!(refused.contains(words), "{text}\n{refused}");
    }
}

#[test]
fn a_guard_gives_each_start_up_a_holdout_and_leaves_baselines_whole() {
    let config = parse(
        "[guard]\nholdout_percent = 10\nwindow = \"60s\"\n[[rule]]\nname = \"a\"\nstartup = \"su_standard\"\n\
         [[rule]]\nname = \"b\"\nstartup = \"leave-alone\"",
    )
    .unwrap();
    assert_eq!(config.arm_names(&config.rules[0]), ["holdout", "treated"]);
    assert_eq!(config.arm_names(&config.rules[1]), ["all"]);
    let shares: u32 = config
        .arms(&config.rules[0])
        .iter()
        .map(|arm| u32::from(arm.share_percent))
        .sum();
    assert_eq!(shares, 100);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_file_says_it_is_taken_or_refused(text in ".{0,400}") {
        let _ = parse(&text);
    }

    /// Lines of a good file, in any order, some cut short.
    #[test]
    fn a_file_in_disorder_is_taken_or_refused_with_a_line(
        picks in prop::collection::vec((0usize..80, 0usize..60), 0..40),
    ) {
        let example = include_str!("../../../packaging/headstart.toml");
        let lines: Vec<&str> = example.lines().map(|line| line.trim_start_matches("# ")).collect();
        let text: Vec<String> = picks
            .iter()
            .map(|(line, cut)| lines[line % lines.len()].chars().take(cut + 20).collect())
            .collect();
        if let Err(error) = parse(&text.join("\n")) {
            prop_assert!(error.starts_with("headstart.toml:"), "{}", error);
        }
    }
}

#[test]
fn the_path_memory_is_kept_by_itself_and_shared_when_told() {
    let memory = parse("[daemon]\nstate_dir = \"/x\"").unwrap().memory;
    assert_eq!(memory.file.unwrap().to_str(), Some("/x/paths.sqlite"));
    assert!(memory.site.is_none());
    let text = "[memory]\nfile = \"none\"\nmax_paths = 1000000\nparams = { lifetime_s = 60 }\n\
                url = \"redis://:secret@10.0.0.9/2\"";
    let memory = parse(text).unwrap().memory;
    assert_eq!((memory.file, memory.max_paths), (None, 1_000_000));
    assert_eq!(memory.params.get("lifetime_s"), Some(60));
    let shown = format!("{:?}", memory.site);
    assert_eq!(shown, "Some(redis://10.0.0.9:6379/2)");
}

#[test]
fn what_is_wrong_with_the_path_memory_is_told_and_never_the_password() {
    let refusals = [
        (
            "url = \"http://:secret@h\"",
            "headstart.toml:2: \"url\" in [memory]",
        ),
        (
            "url = \"redis://:secret@h\"\nauthorities = \"/ca.pem\"",
            "authorities are for TLS",
        ),
        ("authorities = \"/ca.pem\"", "there is no url"),
        ("max_paths = 10", "from 1000 to 4000000"),
        (
            "params = { lifetime_s = 0 }",
            "must be 1 to 604800 s (got 0)",
        ),
        ("params = { lifetime = 9 }", "did you mean \"lifetime_s\"?"),
        (
            "ulr = \"redis://:secret@h\"",
            "unknown key \"ulr\" in [memory]",
        ),
    ];
    for (text, expected) in refusals {
        let refused = parse(&format!("[memory]\n{text}")).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
}

#[test]
fn the_values_of_a_buckets_options_are_not_printed() {
    let config =
        parse("[records.bucket]\nurl = \"s3://x\"\noptions = { aws_secret_access_key = \"hush\" }")
            .unwrap();
    let printed = format!("{config:?}");
    assert!(printed.contains("aws_secret_access_key") && !printed.contains("hush"));
}
