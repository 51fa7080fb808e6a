-- Spark (3.4 or newer): where the records are (docs/records.md); a folder, or s3a://bucket/folder/.
CREATE OR REPLACE TEMPORARY VIEW records AS
SELECT *, unix_micros(start) AS start_us FROM parquet.`records/`;
