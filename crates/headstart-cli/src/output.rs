//! What goes to standard output.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use anyhow::Context;
use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::failure::Failure;

/// A plain table: no frame, columns aligned, as wide as the terminal at most.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// The columns `numbers` stand right, the others left.
    pub(crate) fn new(header: &[&str], numbers: Range<usize>) -> Table {
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_header(header.iter().copied());
        // A serial console tells a width of 0: nothing is known, so nothing is wrapped.
        if table.width() == Some(0) {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        for column in table
            .column_iter_mut()
            .skip(numbers.start)
            .take(numbers.len())
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Table(table)
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.trim_fmt().fmt(f)
    }
}

/// Prints `text` and a newline. A reader that has gone (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done.context("cannot print the results")?),
    }
}
