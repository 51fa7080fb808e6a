//! Rules that record.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "whoever takes in this file uses its part"
)]

use headstart_kernel::{Arm, PolicySpec, Rule, SHARE_ONE};

/// Matches all connections, records, and has one arm.
pub fn rule(id: u32, control: Option<&str>) -> Rule {
    Rule {
        id,
        cgroup: None,
        ifindex: None,
        ports: (0, u16::MAX),
        destination: None,
        records: true,
        by_connection: false,
        arms: vec![Arm {
            share: SHARE_ONE,
            control: control.map(str::to_owned),
            ..Arm::default()
        }],
    }
}

/// Records the connections of one of our ports, as on a server, and leaves them what they have.
pub fn rule_of_port(id: u32, port: u16) -> Rule {
    Rule {
        ports: (port, port),
        ..rule(id, None)
    }
}

/// All connections are sampled.
pub fn policy_of(rules: Vec<Rule>) -> PolicySpec {
    PolicySpec {
        salt: 1,
        sample: SHARE_ONE,
        arm_bits_v4: 24,
        arm_bits_v6: 48,
        rules,
    }
}
