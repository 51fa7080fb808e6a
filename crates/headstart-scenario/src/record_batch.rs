//! Arrow tables of rows, one line a column: for the files that are written, and for those who hand tables on
//! without a file (the Python module).

/// A `Result<RecordBatch, ArrowError>` of rows. A line is a column: its name, whether it may hold nulls, the array of
/// `arrow_array` that holds it, how that is made of an iterator, and the value of a row. It names `arrow_array` and
/// `arrow_schema`, which whoever uses it depends on: this crate has them for its files only.
#[macro_export]
macro_rules! record_batch {
    ($rows:expr; $($name:literal $null:literal $array:ident $from:ident |$row:pat_param| $value:expr;)+) => {{
        let columns: Vec<(&'static str, bool, ::arrow_array::ArrayRef)> = vec![$((
            $name,
            $null,
            ::std::sync::Arc::new(::arrow_array::$array::$from($rows.iter().map(|$row| $value))),
        )),+];
        let fields: Vec<::arrow_schema::Field> = columns
            .iter()
            .map(|(name, null, values)| {
                let kind = ::arrow_array::Array::data_type(values).clone();
                ::arrow_schema::Field::new(*name, kind, *null)
            })
            .collect();
        let values = columns.into_iter().map(|(_, _, values)| values).collect();
        let schema = ::std::sync::Arc::new(::arrow_schema::Schema::new(fields));
        ::arrow_array::RecordBatch::try_new(schema, values)
    }};
}
