//! `headstart._native`: the Rust crates as the Python package sees them. Thin: convert, call, convert.

use pyo3::prelude::*;

mod scenario;
mod startups;

/// The native part of the package `headstart`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::scenario::ScenarioError;
    #[pymodule_export]
    use super::scenario::load_scenario;
    #[pymodule_export]
    use super::startups::startups;
}
