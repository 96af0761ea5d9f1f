-- Containers of Pods, of all three kinds, each with its state.
SELECT p.namespace, p.name AS pod, 'container' AS kind, c.value ->> 'name' AS name, c.value ->> 'image' AS image,
       quantity(c.value ->> '$.resources.requests.cpu') AS cpu_request,
       quantity(c.value ->> '$.resources.requests.memory') AS memory_request,
       quantity(c.value ->> '$.resources.limits.cpu') AS cpu_limit,
       quantity(c.value ->> '$.resources.limits.memory') AS memory_limit,
       s.value ->> 'ready' AS ready, s.value ->> 'restartCount' AS restarts, s.value -> 'state' AS state,
       s.value ->> 'imageID' AS image_id, p.spec_node_name AS node, p.uid AS pod_uid, c.value AS spec
FROM pods p, json_each(p.spec, '$.containers') c
LEFT JOIN json_each(p.status, '$.containerStatuses') s ON s.value ->> 'name' = c.value ->> 'name'
UNION ALL
SELECT p.namespace, p.name, 'init', c.value ->> 'name', c.value ->> 'image',
       quantity(c.value ->> '$.resources.requests.cpu'), quantity(c.value ->> '$.resources.requests.memory'),
       quantity(c.value ->> '$.resources.limits.cpu'), quantity(c.value ->> '$.resources.limits.memory'),
       s.value ->> 'ready', s.value ->> 'restartCount', s.value -> 'state',
       s.value ->> 'imageID', p.spec_node_name, p.uid, c.value
FROM pods p, json_each(p.spec, '$.initContainers') c
LEFT JOIN json_each(p.status, '$.initContainerStatuses') s ON s.value ->> 'name' = c.value ->> 'name'
UNION ALL
SELECT p.namespace, p.name, 'ephemeral', c.value ->> 'name', c.value ->> 'image',
       quantity(c.value ->> '$.resources.requests.cpu'), quantity(c.value ->> '$.resources.requests.memory'),
       quantity(c.value ->> '$.resources.limits.cpu'), quantity(c.value ->> '$.resources.limits.memory'),
       s.value ->> 'ready', s.value ->> 'restartCount', s.value -> 'state',
       s.value ->> 'imageID', p.spec_node_name, p.uid, c.value
FROM pods p, json_each(p.spec, '$.ephemeralContainers') c
LEFT JOIN json_each(p.status, '$.ephemeralContainerStatuses') s ON s.value ->> 'name' = c.value ->> 'name'
