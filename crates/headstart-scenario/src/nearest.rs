//! "Did you mean": the known name nearest to a mistyped one.

/// Names this similar (Jaro-Winkler, 0 to 1) are taken for a misspelling of each other. Chosen by hand: one letter wrong in
/// four passes, two different short words do not.
const SIMILAR_ENOUGH: f64 = 0.8;

/// The one of `known` that `name` most likely stands for, if any is near enough.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), *candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let keys = [
            "rate",
            "reverse_rate",
            "rtt",
            "delay",
            "queue",
            "reverse_queue",
        ];
        assert_eq!(nearest("reverse_rat", &keys), Some("reverse_rate"));
        assert_eq!(nearest("rat", &keys), Some("rate"));
        assert_eq!(nearest("quue", &keys), Some("queue"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
