-- DuckDB: where the records are (docs/records.md); files, folders with *, or s3://bucket/folder/*.parquet.
CREATE OR REPLACE TEMPORARY VIEW records AS
SELECT *, epoch_us(start) AS start_us FROM read_parquet('records/*.parquet');
