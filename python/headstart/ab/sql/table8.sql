-- Table 8: retransmissions, of all and by service: bytes sent again in percent of the unique bytes, transfers that
-- sent again in percent, timeouts in 100 transfers.
SELECT
    arm,
    local_port,
    count(*) AS transfers,
    100 * sum(retransmitted_bytes) / sum(bytes) AS bytes_again_pct,
    100 * avg(CASE WHEN retransmitted_bytes > 0 THEN 1e0 ELSE 0e0 END) AS transfers_again_pct,
    100 * avg(rto_count) AS timeouts_in_100
FROM transfers
GROUP BY arm, local_port
UNION ALL
SELECT
    arm,
    NULL AS local_port,
    count(*) AS transfers,
    100 * sum(retransmitted_bytes) / sum(bytes) AS bytes_again_pct,
    100 * avg(CASE WHEN retransmitted_bytes > 0 THEN 1e0 ELSE 0e0 END) AS transfers_again_pct,
    100 * avg(rto_count) AS timeouts_in_100
FROM transfers
GROUP BY arm
ORDER BY local_port NULLS LAST, arm;
