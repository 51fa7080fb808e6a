//! The registry of start-ups for Python.

use headstart_core::Startup;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// All start-ups: name, source and parameters, each with its unit, range and default.
#[pyfunction]
pub(crate) fn startups(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows: Vec<_> = Startup::all()
        .map(|startup| row(py, startup))
        .collect::<PyResult<_>>()?;
    PyList::new(py, rows)
}

fn row(py: Python<'_>, startup: Startup) -> PyResult<Bound<'_, PyDict>> {
    let mut parameters = Vec::new();
    for param in startup.params() {
        let dict = PyDict::new(py);
        dict.set_item("name", param.name)?;
        dict.set_item("unit", param.unit)?;
        dict.set_item("default", param.default)?;
        dict.set_item("min", param.min)?;
        dict.set_item("max", param.max)?;
        dict.set_item("help", param.help)?;
        parameters.push(dict);
    }
    let dict = PyDict::new(py);
    dict.set_item("name", startup.name())?;
    dict.set_item("source", startup.source())?;
    dict.set_item("parameters", PyList::new(py, parameters)?)?;
    Ok(dict)
}
