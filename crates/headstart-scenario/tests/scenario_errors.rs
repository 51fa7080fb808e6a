//! Every way in which a scenario file can be wrong, and the words that the user reads.

use std::path::Path;

use headstart_scenario::{Listed, Parameter, Scenario};

const GOOD: &str = r#"name = "t1"
seed = 7

[path]
rate = "12mbit"
rtt = "400ms"
queue = "drop-tail:400"

[compare]
startups = ["cubic", "su_fast_start"]
repeat = 3

[[case]]
kind = "new-cold"
bytes = "50KiB"

[[case]]
kind = "resume-warm"
bytes = "50KiB"
warm_bytes = "2MB"
idle = "10s"

[startup.su_fast_start]
maxburst = 4
"#;

fn error_of(text: &str) -> String {
    match Scenario::parse("t1.toml", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// The good scenario with each `from` replaced by its `to`.
fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(GOOD.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in the good scenario");
        text.replacen(from, to, 1)
    })
}

/// What the user reads for each of `changes` to the good scenario, one paragraph each.
fn complaints(changes: &[(&str, &str)]) -> String {
    let paragraphs = changes.iter().map(|(from, to)| {
        let shown = if to.is_empty() { "(nothing)" } else { to };
        format!("{from}  ->  {shown}\n{}\n", error_of(&with(&[(from, to)])))
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_good_scenario_is_accepted() {
    assert!(Scenario::parse("t1.toml", GOOD).is_ok());
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_key() {
    let said = complaints(&[
        ("rtt = ", "reverse_rat = \"1mbit\"\nrtt = "),
        ("rtt = ", "colour = \"red\"\nrtt = "),
        ("seed = 7", "sed = 7"),
        ("seed = 7", "[sim]\nmss = 1448\n[cases]"),
        ("repeat = 3", "repeats = 3"),
        ("kind = \"new-cold\"", "kind = \"new-cold\"\nbite = 3"),
        ("[path]", "[transfer]\nservers = \"nginx\"\n\n[path]"),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn the_first_unknown_key_of_the_file_is_the_one_that_is_named() {
    let text = with(&[
        ("rate = ", "zz = 1\nrate = "),
        ("queue = ", "aa = 1\nqueue = "),
    ]);
    assert!(error_of(&text).starts_with("t1.toml:5: unknown key \"zz\" in [path]"));
}

#[test]
fn a_missing_key_is_named_with_the_line_of_its_table() {
    let said = complaints(&[
        ("name = \"t1\"\n", ""),
        ("rate = \"12mbit\"\n", ""),
        ("rtt = \"400ms\"\n", ""),
        ("rtt = \"400ms\"\n", "delay = \"200ms\"\n"),
        ("rtt = \"400ms\"\n", "reverse_delay = \"200ms\"\n"),
        ("queue = \"drop-tail:400\"\n", ""),
        ("startups = [\"cubic\", \"su_fast_start\"]\n", ""),
        ("repeat = 3\n", ""),
        ("kind = \"new-cold\"\n", ""),
        ("bytes = \"50KiB\"\n", ""),
        ("warm_bytes = \"2MB\"\n", ""),
        ("idle = \"10s\"\n", ""),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_missing_table_is_named() {
    assert_eq!(
        error_of("name = \"t1\"\n"),
        "t1.toml:1: \"path\" is missing at the top level; add a line such as [path]"
    );
    let no_case = GOOD.split("[[case]]").next().unwrap_or_default();
    assert_eq!(
        error_of(no_case),
        "t1.toml:1: \"case\" is missing at the top level; add a line such as [[case]]"
    );
    assert_eq!(
        error_of(""),
        "t1.toml:1: \"name\" is missing at the top level; add a line such as name = \"satellite\""
    );
}

#[test]
fn a_single_case_still_has_to_be_in_a_list() {
    let no_case = GOOD.split("[[case]]").next().unwrap_or_default();
    assert_eq!(
        error_of(&format!("{no_case}[case]\nkind = \"new-cold\"\n")),
        "t1.toml:13: \"case\" at the top level is a table, but has to be a list of tables; \
         write it like [[case]]"
    );
}

#[test]
fn a_wrong_type_is_named_with_the_type_that_is_wanted() {
    let said = complaints(&[
        ("name = \"t1\"", "name = 1"),
        ("seed = 7", "seed = \"7\""),
        ("seed = 7", "seed = 7.5"),
        ("seed = 7", "transfer = 3"),
        ("rate = \"12mbit\"", "rate = 12"),
        ("rtt = \"400ms\"", "rtt = 0.4"),
        (
            "queue = \"drop-tail:400\"",
            "queue = { kind = \"drop-tail\" }",
        ),
        (
            "startups = [\"cubic\", \"su_fast_start\"]",
            "startups = \"cubic\"",
        ),
        ("\"cubic\", \"su_fast_start\"", "\"cubic\",\n  3"),
        ("repeat = 3", "repeat = true"),
        ("bytes = \"50KiB\"", "bytes = [50]"),
        ("idle = \"10s\"", "idle = 2026-01-01"),
        ("maxburst = 4", "maxburst = \"4\""),
        (
            "[startup.su_fast_start]\nmaxburst = 4",
            "[startup]\nsu_fast_start = 4",
        ),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_value_that_makes_no_sense_is_named_with_what_to_write_instead() {
    let said = complaints(&[
        ("name = \"t1\"", "name = \" \""),
        ("seed = 7", "seed = -7"),
        ("rate = \"12mbit\"", "rate = \"12\""),
        ("rate = \"12mbit\"", "rate = \"12mb\""),
        ("rate = \"12mbit\"", "rate = \"0mbit\""),
        ("rtt = \"400ms\"", "rtt = \"400\""),
        ("rtt = \"400ms\"", "rtt = \"4h\""),
        (
            "rtt = \"400ms\"",
            "rtt = \"400ms\"\nreverse_delay = \"10ms\"",
        ),
        ("queue = \"drop-tail:400\"", "queue = \"drop-tail:0\""),
        ("queue = \"drop-tail:400\"", "queue = \"red:5,15\""),
        (
            "queue = \"drop-tail:400\"",
            "queue = \"red:99,min=80,max=20\"",
        ),
        (
            "queue = \"drop-tail:400\"",
            "queue = \"drop-tail:0.001bdp\"",
        ),
        ("rate = \"12mbit\"", "preset = \"satelite\""),
        ("rate = \"12mbit\"", "rate = \"wifi:hold=1us\""),
        ("rate = \"12mbit\"", "rate = \"12mbit\"\nrate_trace = \"x\""),
        ("rate = \"12mbit\"", "rate_trace = \"no-such-trace\""),
        ("[path]", "[path]\nloss = \"101%\""),
        ("[path]", "[path]\njitter = \"5\""),
        ("[path]", "[path]\nflow_delay = \"gamma:5ms\""),
        ("[path]", "[path]\nreverse_reorder = \"1%\""),
        ("[path]", "[path]\npriority_dscp = 64"),
        ("[path]", "[transfer]\nserver = \"apache\"\n\n[path]"),
        ("[path]", "[transfer]\nclient = \"wget\"\n\n[path]"),
        ("startups = [\"cubic\", \"su_fast_start\"]", "startups = []"),
        ("\"cubic\", \"su_fast_start\"", "\"cubic\",\n  \"cubic\""),
        ("\"cubic\", \"su_fast_start\"", "\"\""),
        ("\"cubic\", \"su_fast_start\"", "\"cubic\""),
        ("repeat = 3", "repeat = 0"),
        ("repeat = 3", "repeat = 4294967296"),
        ("kind = \"new-cold\"", "kind = \"new-warn\""),
        ("kind = \"new-cold\"", "kind = \"cold\""),
        ("kind = \"new-cold\"", "kind = \"stale\""),
        ("bytes = \"50KiB\"", "bytes = \"0KiB\""),
        ("bytes = \"50KiB\"", "bytes = 0"),
        ("bytes = \"50KiB\"", "bytes = \"50KBits\""),
        ("bytes = \"50KiB\"", "bytes = \"1.5MB\""),
        ("warm_bytes = \"2MB\"", "warm_bytes = 0"),
        ("idle = \"10s\"", "idle = \"0s\""),
        ("maxburst = 4", "maxburst = -1"),
        ("maxburst = 4", "maxburst = 0x1_0000_0000"),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_case_has_only_the_keys_that_its_kind_knows() {
    let said = complaints(&[
        ("kind = \"new-cold\"", "kind = \"new-cold\"\nidle = \"10s\""),
        (
            "kind = \"new-cold\"",
            "kind = \"new-cold\"\nwarm_bytes = \"2MB\"",
        ),
        ("kind = \"resume-warm\"", "kind = \"new-warm\""),
        ("kind = \"resume-warm\"", "kind = \"new-cold\""),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_case_that_the_results_could_not_tell_from_another_is_refused() {
    let again = format!("{GOOD}\n[[case]]\nkind = \"new-cold\"\nbytes = 51200\n");
    assert_eq!(
        error_of(&again),
        "t1.toml:26: new-cold with 50KiB is a case already (line 13), and the results tell cases \
         apart by kind and bytes; remove one, or change its bytes"
    );
}

#[test]
fn a_text_that_is_no_toml_is_named_with_its_line() {
    let said = complaints(&[
        ("rate = \"12mbit\"", "rate = 12mbit"),
        ("rate = \"12mbit\"", "rate = \"12mbit"),
        ("rate = \"12mbit\"", "rate \"12mbit\""),
        ("rate = \"12mbit\"", "rate = \"12mbit\"\nrate = \"1mbit\""),
        ("[path]", "[path"),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_named() {
    let missing = Scenario::load(Path::new("no/such/scenario.toml")).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "no/such/scenario.toml: no such file; give the path of a scenario, such as \
         scenarios/satellite.toml"
    );
    let folder = Scenario::load(Path::new("src")).unwrap_err().to_string();
    assert!(folder.starts_with("src: cannot be read: "), "{folder}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("latin1.toml");
    std::fs::write(&path, b"name = \"t1\"\ndescription = \"caf\xe9\"\n").unwrap();
    let latin1 = Scenario::load(&path).unwrap_err().to_string();
    let expected = "latin1.toml:2: the line is not UTF-8 text; save the file as UTF-8";
    assert!(latin1.ends_with(expected), "{latin1}");
}

#[test]
fn what_only_the_registry_knows_is_refused_with_the_same_words() {
    let scenario = Scenario::parse("t1.toml", GOOD).unwrap();
    let startup = Listed {
        name: "su_fast_strat".to_owned(),
        startup: "su_fast_strat".to_owned(),
        settings: Vec::new(),
        line: 10,
    };
    assert_eq!(
        scenario
            .unknown_startup(&startup, &["su_standard", "su_fast_start"])
            .to_string(),
        "t1.toml:10: start-up \"su_fast_strat\" in [compare] is not known; did you mean \
         \"su_fast_start\"?"
    );
    let parameter: &Parameter = &scenario.parameters[0];
    assert_eq!(
        scenario
            .unknown_parameter(parameter, &["quick_recovery"])
            .to_string(),
        "t1.toml:24: unknown key \"maxburst\" in [startup.su_fast_start]; the only one known is \
         quick_recovery"
    );
    assert_eq!(
        scenario
            .bad_parameter(parameter, "4 is above 3; give 1 to 3")
            .to_string(),
        "t1.toml:24: \"maxburst\" in [startup.su_fast_start]: 4 is above 3; give 1 to 3"
    );
}

#[test]
fn what_several_paths_sizes_and_parameters_in_braces_need_is_told() {
    insta::assert_snapshot!(complaints(&[
        ("[path]\n", "[[path]]\n"),
        (
            "[path]\n",
            "[[path]]\nname = \"a\"\nrate = \"1mbit\"\nrtt = \"1ms\"\nqueue = \"drop-tail:5\"\n[[path]]\nname = \"a\"\n"
        ),
        ("bytes = \"50KiB\"", "bytes = \"50KiB\"\nsizes = [\"10kB\"]"),
        ("bytes = \"50KiB\"", "sizes = []"),
        ("bytes = \"50KiB\"", "bytes = \"0.5bdp\""),
        ("\"cubic\"", "\"su_standard{hystart=0\""),
        ("repeat = 3", "repeat = 3\nlimit_s = 0"),
    ]));
}
