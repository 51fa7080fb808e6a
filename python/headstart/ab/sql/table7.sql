-- Table 7: the mean of short transfers, at most 3 segments; of all and by service.
SELECT arm, local_port, count(*) AS transfers, avg(latency_ms) AS mean_ms
FROM transfers
WHERE segments <= 3
GROUP BY arm, local_port
UNION ALL
SELECT arm, NULL AS local_port, count(*) AS transfers, avg(latency_ms) AS mean_ms
FROM transfers
WHERE segments <= 3
GROUP BY arm
ORDER BY local_port NULLS LAST, arm;
