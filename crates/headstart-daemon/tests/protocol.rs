//! The words of the control socket, whatever comes.

use headstart_daemon::{MAX_REQUEST_BYTES, Request, parse_request};
use proptest::prelude::*;

fn requests() -> impl Strategy<Value = Request> {
    let name = prop::option::of("[a-z ]{0,40}");
    prop_oneof![
        Just(Request::Status),
        Just(Request::Top),
        Just(Request::Reload),
        name.clone().prop_map(|rule| Request::Off { rule }),
        name.prop_map(|rule| Request::On { rule }),
        (any::<std::net::IpAddr>(), any::<u16>()).prop_map(|(addr, port)| Request::Explain {
            addr,
            port,
            cgroup: None
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..2 * MAX_REQUEST_BYTES)) {
        let _ = parse_request(&bytes);
    }

    #[test]
    fn a_request_comes_as_it_was_sent(request in requests()) {
        let line = serde_json::to_vec(&request).expect("a request can be written");
        prop_assert_eq!(parse_request(&line), Ok(request));
    }

    #[test]
    fn a_damaged_request_is_refused_or_another_one(
        request in requests(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut line = serde_json::to_vec(&request).expect("a request can be written");
        let at = at.index(line.len());
        line[at] = byte;
        let _ = parse_request(&line);
    }
}

#[test]
fn a_request_that_is_too_long_is_refused_with_the_limit() {
    let long = vec![b' '; MAX_REQUEST_BYTES + 1];
    let refused = parse_request(&long);
    assert!(refused.is_err_and(|words| words.contains("at most 4096 bytes")));
}

#[test]
fn an_unknown_verb_and_an_unknown_field_are_refused() {
    for text in [r#"{"verb":"stop"}"#, r#"{"verb":"off","rule":null,"x":1}"#] {
        assert!(parse_request(text.as_bytes()).is_err(), "{text}");
    }
}
