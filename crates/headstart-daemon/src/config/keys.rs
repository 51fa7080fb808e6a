//! The names of all keys, each with an example of its value for error messages.

use headstart_scenario::reader::Key;

macro_rules! keys {
    ($($constant:ident = $name:literal, $example:literal;)*) => {
        $(pub(super) const $constant: Key = Key { name: $name, example: $example };)*
    };
}
keys! {
    DAEMON = "daemon", "[daemon]";
    CGROUP = "cgroup", "\"system.slice/nginx.service\"";
    RUN_DIR = "run_dir", "\"/run/headstart\"";
    STATE_DIR = "state_dir", "\"/var/lib/headstart\"";
    RECORDS = "records", "[records]";
    DIR = "dir", "\"/var/lib/headstart/records\"";
    SAMPLE = "sample_percent", "100";
    ROTATE = "rotate", "\"3600s\"";
    ROTATE_BYTES = "rotate_bytes", "\"256MiB\"";
    BUCKET = "bucket", "[records.bucket]";
    BUCKET_URL = "url", "\"s3://bucket/prefix\"";
    OPTIONS = "options", "{ region = \"eu-central-1\" }";
    KEEP = "keep", "false";
    BACKLOG = "backlog_bytes", "\"8GiB\"";
    METRICS = "metrics", "[metrics]";
    LISTEN = "listen", "\"127.0.0.1:9870\"";
    MEMORY = "memory", "[memory]";
    FILE = "file", "\"/var/lib/headstart/paths.sqlite\"";
    MAX_PATHS = "max_paths", "65536";
    URL = "url", "\"redis://:PASSWORD@10.0.0.9:6379/0\"";
    AUTHORITIES = "authorities", "\"/etc/headstart/site-ca.pem\"";
    MARKING = "marking", "[marking]";
    DSCP = "dscp", "1";
    DEVICES = "devices", "[\"eth0\"]";
    GUARD = "guard", "[guard]";
    HOLDOUT = "holdout_percent", "5";
    WINDOW = "window", "\"300s\"";
    MIN_TRANSFERS = "min_transfers", "200";
    RETRANSMISSIONS = "retransmission_points", "2";
    TIMEOUTS = "timeout_points", "2";
    LATENCY = "latency_percent", "25";
    EXPERIMENT = "experiment", "[experiment]";
    NAME = "name", "\"web\"";
    SALT = "salt", "\"2026-11\"";
    UNIT = "unit", "\"prefix\"";
    SLICE = "slice", "\"600s\"";
    BURN_IN = "burn_in", "\"60s\"";
    BASELINE = "baseline", "\"iw3\"";
    UNTIL = "until", "\"2026-12-01T00:00:00Z\"";
    STOP = "stop", "[experiment.stop]";
    ARM = "arm", "[[experiment.arm]]";
    SHARE = "share_percent", "50";
    RULE = "rule", "[[rule]]";
    STARTUP = "startup", "\"su_fast_start\"";
    PARAMS = "params", "{ maxburst_pkts = 4 }";
    PORTS = "ports", "\"443\"";
    DESTINATION = "destination", "\"203.0.113.0/24\"";
    INTERFACE = "interface", "\"eth0\"";
    CAP = "cap_pkts", "200";
    RULE_RECORDS = "records", "true";
}
