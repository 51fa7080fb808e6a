//! Scenario files for Python: read by the same parser as everywhere, handed over as plain dicts.

use std::path::PathBuf;

use headstart_scenario::{Case, Scenario};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pyo3::create_exception!(
    _native,
    ScenarioError,
    PyValueError,
    "A scenario file that is refused: FILE:LINE: object, cause; next step."
);

/// Checks the scenario `text`; errors call it `file`.
///
/// Raises ScenarioError as `load_scenario` does.
#[pyfunction]
pub(crate) fn check_scenario(file: &str, text: &str) -> PyResult<()> {
    match Scenario::parse(file, text) {
        Ok(_) => Ok(()),
        Err(error) => Err(ScenarioError::new_err(error.to_string())),
    }
}

/// Reads and checks the scenario file at `path`. The keys of the dict carry their units.
///
/// Raises ScenarioError with file, line, cause and next step when the file is not in order.
#[pyfunction]
pub(crate) fn load_scenario(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let scenario =
        Scenario::load(&path).map_err(|error| ScenarioError::new_err(error.to_string()))?;
    let dict = PyDict::new(py);
    dict.set_item("name", &scenario.name)?;
    dict.set_item("description", &scenario.description)?;
    dict.set_item("seed", scenario.seed)?;
    dict.set_item("path", path_of(py, &scenario)?)?;
    dict.set_item("transfer", transfer_of(py, &scenario)?)?;
    dict.set_item("compare", compare_of(py, &scenario)?)?;
    let cases: Vec<_> = scenario
        .cases
        .iter()
        .map(|case| case_of(py, case))
        .collect::<PyResult<_>>()?;
    dict.set_item("cases", PyList::new(py, cases)?)?;
    dict.set_item("parameters", parameters_of(py, &scenario)?)?;
    Ok(dict)
}

fn path_of<'py>(py: Python<'py>, scenario: &Scenario) -> PyResult<Bound<'py, PyDict>> {
    let path = &scenario.path;
    let dict = PyDict::new(py);
    dict.set_item("rate_bits_per_s", path.forward.rate.nominal().bits_per_s())?;
    dict.set_item(
        "reverse_rate_bits_per_s",
        path.reverse.rate.nominal().bits_per_s(),
    )?;
    dict.set_item("delay_ms", path.forward.delay.as_ms_f64())?;
    dict.set_item("reverse_delay_ms", path.reverse.delay.as_ms_f64())?;
    dict.set_item("queue", path.forward.queue.to_string())?;
    dict.set_item("reverse_queue", path.reverse.queue.to_string())?;
    Ok(dict)
}

fn transfer_of<'py>(py: Python<'py>, scenario: &Scenario) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("server", scenario.transfer.server.name())?;
    dict.set_item("client", scenario.transfer.client.name())?;
    Ok(dict)
}

fn compare_of<'py>(py: Python<'py>, scenario: &Scenario) -> PyResult<Bound<'py, PyDict>> {
    let names = scenario
        .compare
        .startups
        .iter()
        .map(|startup| startup.name.as_str());
    let dict = PyDict::new(py);
    dict.set_item("startups", names.collect::<Vec<_>>())?;
    dict.set_item("repeat", scenario.compare.repeat)?;
    Ok(dict)
}

fn case_of<'py>(py: Python<'py>, case: &Case) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", case.kind().name())?;
    dict.set_item("bytes", case.bytes().bytes())?;
    dict.set_item("warm_bytes", case.warm_bytes().map(|size| size.bytes()))?;
    dict.set_item("idle_ms", case.idle().map(|idle| idle.as_ms_f64()))?;
    Ok(dict)
}

fn parameters_of<'py>(py: Python<'py>, scenario: &Scenario) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for startup in &scenario.compare.startups {
        let given = PyDict::new(py);
        for parameter in scenario.parameters_of(&startup.name) {
            given.set_item(&parameter.name, parameter.value)?;
        }
        if !given.is_empty() {
            dict.set_item(&startup.name, given)?;
        }
    }
    Ok(dict)
}
