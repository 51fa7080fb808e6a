//! `headstart._native`: the Rust crates as the Python package sees them. Thin: convert, call, convert.

use pyo3::prelude::*;

mod columns;
mod observe;
mod scenario;
mod simulate;
mod startups;
mod table;

/// The native part of the package `headstart`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::scenario::ScenarioError;
    #[pymodule_export]
    use super::scenario::check_scenario;
    #[pymodule_export]
    use super::scenario::load_scenario;
    #[pymodule_export]
    use super::simulate::simulate;
    #[pymodule_export]
    use super::startups::startups;
    #[pymodule_export]
    use super::table::Table;
}
