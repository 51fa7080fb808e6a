//! Tables for Python: Arrow record batches behind the Arrow PyCapsule interface, which Polars, pandas
//! and pyarrow read without a copy.

use std::ffi::CStr;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The capsule's name, by the Arrow PyCapsule interface.
const STREAM: &CStr = c"arrow_array_stream";

/// A table. Give it to `polars.DataFrame`, or to whatever else reads Arrow.
#[pyclass(frozen, module = "headstart._native")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// The table of these batches; `empty` gives the columns where there are none.
    pub(crate) fn new(empty: &RecordBatch, batches: Vec<RecordBatch>) -> Table {
        Table {
            schema: empty.schema(),
            batches,
        }
    }
}

#[pymethods]
impl Table {
    /// The Arrow PyCapsule interface. A schema that is asked for is not heeded, as it allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, STREAM)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}
