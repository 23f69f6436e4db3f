-- The entries in some files of a history, of a single testbed unless the testbed is null. The testbed is the name of a
-- file's own folder. Folders above may have such names, too, and Hive's own reading would take them for columns.
-- A column of another type than ours is an error when its values are inserted.
CREATE TEMP TABLE found AS SELECT *, '' AS file, true AS is_usable FROM added;

INSERT INTO found BY NAME SELECT *, coalesce(
    -- Rows that a trend can be computed from: a value or a list may be null, but nothing in a list.
    test IS NOT NULL AND quantity IS NOT NULL AND outcome IS NOT NULL AND unit IS NOT NULL
    AND coalesce(value, 0) >= 0
    AND started BETWEEN '0002-01-01' AND '9998-12-31'
    AND coalesce(run_started, started) BETWEEN '0002-01-01' AND '9998-12-31'
    AND list_bool_and([isfinite(coalesce(number, 0)) FOR number IN
        [value, lower_bound, upper_bound, seconds, frame_size_bytes, unsent_share, most, aggregate_factor]])
    AND coalesce(aggregate_factor, 1) > 0
    AND list_bool_and([isfinite(coalesce(number / coalesce(aggregate_factor, 1), 0)) FOR number IN
        [value, lower_bound, upper_bound, most]])
    AND coalesce(resolution, 0) >= 0 AND coalesce(resolution, 0) < 1
    AND len(coalesce(doubts, [])) = list_count(coalesce(doubts, []))
    AND len(coalesce(tags, [])) = list_count(coalesce(tags, []))
    AND coalesce(list_bool_and([point.load || point.direction IS NOT NULL
        AND isfinite(coalesce(point.p50_us, 0) + coalesce(point.p90_us, 0) + coalesce(point.p99_us, 0)
            + coalesce(point.most_us, 0)) FOR point IN latency]), true)
    AND coalesce(list_bool_and([reading.quantity || reading.place || reading.unit IS NOT NULL
        AND coalesce(isfinite(reading.value), false) FOR reading IN readings]), true),
    false
) AS is_usable FROM (
    SELECT {columns}, CASE WHEN $readings THEN readings END AS readings, filename AS file,
        url_decode(split_part(split_part(filename, '/', -3), '=', 2)) AS testbed
    FROM (
        FROM read_parquet($files, union_by_name = true, hive_partitioning = false, filename = true)
        UNION ALL BY NAME (SELECT * EXCLUDE testbed FROM added LIMIT 0)
    )
)
WHERE $testbed IS NULL OR testbed = $testbed;

SELECT DISTINCT file FROM found WHERE NOT is_usable ORDER BY file;

-- How many results of each testbed are dated in the future, and the time of the first.
SELECT testbed, count(DISTINCT (test, started)), strftime(min(started), '%Y-%m-%d %H:%M')
FROM found WHERE is_usable AND started > getvariable('latest') AND file <> '' GROUP BY testbed ORDER BY testbed;

-- The entries of files that can be used as a whole, and added ones, by the present names of their tests; rates are per
-- interface. A run that was added before it was resumed, and again afterwards, has entries in two files: each entry
-- counts once.
CREATE TEMP TABLE entries AS
SELECT found.* EXCLUDE (file, is_usable) REPLACE (
    coalesce(same.now, test) AS test,
    value / coalesce(aggregate_factor, 1) AS value,
    lower_bound / coalesce(aggregate_factor, 1) AS lower_bound,
    upper_bound / coalesce(aggregate_factor, 1) AS upper_bound,
    most / coalesce(aggregate_factor, 1) AS most
)
FROM found LEFT JOIN same ON test = same.earlier
WHERE file NOT IN (SELECT file FROM found WHERE NOT is_usable) AND (started <= getvariable('latest') OR file = '')
QUALIFY row_number() OVER (
    PARTITION BY testbed, coalesce(same.now, test), quantity, started
    ORDER BY len(doubts) DESC, len(readings) DESC NULLS LAST, run_started NULLS LAST, run
) = 1;

-- The tests that measured nothing the last time.
FROM (
    FROM entries QUALIFY row_number() OVER (PARTITION BY testbed, test ORDER BY started DESC) = 1
) SELECT testbed, test, started, coalesce(reason, '') WHERE quantity = $nothing_measured ORDER BY testbed, test;

SELECT * EXCLUDE (latency, readings) FROM entries WHERE quantity <> $nothing_measured
ORDER BY testbed, test, quantity, started;

-- The readings as entries: those that the newest results of a device have, each in all of its results.
WITH results AS (
    -- All entries of a result have its latency, and one of them has its readings.
    SELECT testbed, test, started, coalesce(device, '') AS device, measured_as, generator, build, run, run_started,
        tags, frame_size_bytes, latency,
        flatten(list(coalesce(readings, [])) OVER (PARTITION BY testbed, test, started)) AS readings
    FROM entries WHERE quantity <> $nothing_measured
    QUALIFY row_number() OVER (PARTITION BY testbed, test, started ORDER BY quantity) = 1
), points AS (
    SELECT testbed, test, started, device, unnest(latency) AS point FROM results
), numbers AS (
    -- The latency of the slower direction counts.
    SELECT * EXCLUDE (point), 'latency' AS source, 'latency p50' AS name, point.load AS place,
        max(point.p50_us) AS number, 'µs' AS unit FROM points GROUP BY ALL HAVING number IS NOT NULL
    UNION ALL
    SELECT * EXCLUDE (point), 'latency' AS source, 'latency p99' AS name, point.load AS place,
        max(point.p99_us) AS number, 'µs' AS unit FROM points GROUP BY ALL HAVING number IS NOT NULL
    UNION ALL
    SELECT * EXCLUDE (reading), 'telemetry', reading.quantity, reading.place, reading.value, reading.unit
    FROM (SELECT testbed, test, started, device, unnest(readings) AS reading FROM results)
), measured AS (
    SELECT testbed, test, device, source, started,
        row_number() OVER (PARTITION BY testbed, test, device, source ORDER BY started DESC) AS age
    FROM (SELECT DISTINCT testbed, test, device, source, started FROM numbers)
), newest AS (
    SELECT testbed, test, device, source, name, place, max_by(number, started) AS number, max_by(unit, started) AS unit
    FROM numbers JOIN measured USING (testbed, test, device, source, started) WHERE age <= $fresh GROUP BY ALL
), busiest AS (
    -- The graph nodes with the most clocks per packet, of each device under test.
    SELECT testbed, test, device, place FROM newest WHERE name = $clocks QUALIFY row_number() OVER (
        PARTITION BY testbed, test, device, regexp_replace(place, ' ?[^ ]*$', '') ORDER BY number DESC, place
    ) <= $top_nodes
)
SELECT results.* EXCLUDE (latency, readings), newest.name || ', ' || place AS quantity, numbers.number AS value,
    newest.unit, CASE WHEN numbers.number IS NULL THEN 'it has no such reading' END AS reason
FROM measured JOIN results USING (testbed, test, device, started) JOIN newest USING (testbed, test, device, source)
LEFT JOIN numbers USING (testbed, test, device, source, started, name, place)
WHERE NOT list_contains($of_nodes, newest.name) OR (testbed, test, device, place) IN (FROM busiest)
ORDER BY testbed, test, source, quantity, started
