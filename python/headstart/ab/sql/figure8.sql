-- Figure 8: the arms' inputs, which no arm may move.
WITH visits AS (SELECT arm, prefix, CAST(count(*) AS DOUBLE) AS many FROM transfers GROUP BY arm, prefix)
SELECT
    'rtt_ms' AS input,
    arm,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY rtt_ms) AS q10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY rtt_ms) AS q50,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY rtt_ms) AS q90,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY rtt_ms) AS q99
FROM transfers
WHERE rtt_ms IS NOT NULL
GROUP BY arm
UNION ALL
SELECT
    'bytes' AS input,
    arm,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY bytes) AS q10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes) AS q50,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY bytes) AS q90,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY bytes) AS q99
FROM transfers
GROUP BY arm
UNION ALL
SELECT
    'transfers_per_prefix' AS input,
    arm,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY many) AS q10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY many) AS q50,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY many) AS q90,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY many) AS q99
FROM visits
GROUP BY arm
UNION ALL
SELECT
    'receiver_window_bytes' AS input,
    arm,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY receiver_window_bytes) AS q10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY receiver_window_bytes) AS q50,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY receiver_window_bytes) AS q90,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY receiver_window_bytes) AS q99
FROM transfers
GROUP BY arm
UNION ALL
SELECT
    'bandwidth_kbit_per_s' AS input,
    arm,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY kbit_per_s) AS q10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY kbit_per_s) AS q50,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY kbit_per_s) AS q90,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY kbit_per_s) AS q99
FROM transfers
WHERE kbit_per_s IS NOT NULL
GROUP BY arm
UNION ALL
SELECT
    'bdp_bytes' AS input,
    arm,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY bdp_bytes) AS q10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY bdp_bytes) AS q50,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY bdp_bytes) AS q90,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY bdp_bytes) AS q99
FROM transfers
WHERE bdp_bytes IS NOT NULL
GROUP BY arm
ORDER BY input, arm;
