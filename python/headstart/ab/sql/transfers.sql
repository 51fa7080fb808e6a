-- The completed transfers of the experiment, with the buckets of the paper's figures. Run after *_records.sql.
-- The arm that the others are held against:
CREATE OR REPLACE TEMPORARY VIEW base AS SELECT 'iw3' AS arm;

-- Of a prefix: the highest delivery rate of its transfers.
CREATE OR REPLACE TEMPORARY VIEW bandwidths AS
SELECT prefix, max(CAST(delivery_rate_bytes_per_s AS DOUBLE)) * 8 / 1000 AS kbit_per_s
FROM records
WHERE complete AND rule IN (SELECT rule FROM records GROUP BY rule HAVING count(DISTINCT arm) > 1)
GROUP BY prefix
HAVING max(delivery_rate_bytes_per_s) > 0;

-- Of an experiment by slices of time add: AND NOT r.burn_in
CREATE OR REPLACE TEMPORARY VIEW transfers AS
SELECT
    r.arm,
    r.prefix,
    r.local_port,
    r.start_us,
    CAST(r.latency_us AS DOUBLE) / 1000 AS latency_ms,
    CAST(r.bytes AS DOUBLE) AS bytes,
    CAST(r.retransmitted_bytes AS DOUBLE) AS retransmitted_bytes,
    CAST(r.rto_count AS DOUBLE) AS rto_count,
    -- Of the first transfer of a connection the handshake's counts, too, as in the paper.
    least(CAST(r.rtt_min_us AS DOUBLE), CAST(r.rtt_start_us AS DOUBLE)) / 1000 AS rtt_ms,
    CAST(r.receiver_initial_window_bytes AS DOUBLE) AS receiver_window_bytes,
    b.kbit_per_s,
    b.kbit_per_s * least(CAST(r.rtt_min_us AS DOUBLE), CAST(r.rtt_start_us AS DOUBLE)) / 8000
        AS bdp_bytes,
    ceil(CAST(r.bytes AS DOUBLE) / greatest(CAST(r.mss_bytes AS DOUBLE), 1)) AS segments,
    r.transfer_index = 0 AS first_of_connection
FROM records AS r
LEFT JOIN bandwidths AS b ON b.prefix = r.prefix
WHERE r.complete AND r.rule IN (SELECT rule FROM records GROUP BY rule HAVING count(DISTINCT arm) > 1);
