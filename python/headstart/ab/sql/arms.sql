-- The sample ratio: what each arm was given. Compare with the shares of the configuration.
SELECT
    arm,
    count(DISTINCT prefix) AS prefixes,
    sum(CASE WHEN first_of_connection THEN 1 ELSE 0 END) AS connections,
    count(*) AS transfers,
    sum(bytes) AS bytes
FROM transfers
GROUP BY arm
ORDER BY arm;
