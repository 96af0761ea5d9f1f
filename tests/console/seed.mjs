// A small cluster with a past: what is there is made, changed and deleted by several users, so that each view has something
// to show. There are no controllers: what they would write is written in their names.

const controller = name => ({ as: `system:serviceaccount:kube-system:${name}`, agent: 'kube-controller-manager/v1.37.2' });
const ci = { as: 'ci-bot', agent: 'helm/v4.0.1' };
const anna = { as: 'anna', agent: 'kubectl/v1.37.2' };
const omar = { as: 'omar', agent: 'k9s/v0.51.0' };
const kubelet = node => ({ as: `system:node:${node}`, agent: 'kubelet/v1.37.2' });
const merge = { type: 'application/merge-patch+json' };
const strategic = { type: 'application/strategic-merge-patch+json' };

const apps = [
  ['shop', 'web', 3, 'registry.example/shop/web:1.4.2'], ['shop', 'cart', 2, 'registry.example/shop/cart:2.0.1'],
  ['shop', 'search', 2, 'registry.example/shop/search:0.9.0'], ['payments', 'ledger', 2, 'registry.example/pay/ledger:7.1'],
  ['payments', 'gateway', 1, 'registry.example/pay/gateway:3.3'], ['monitoring', 'prometheus', 1, 'quay.io/prometheus/prometheus:v3.8.0'],
];

/// `pause` are milliseconds between steps, so that a picture has times to show.
export async function seed(client, pause = 0) {
  const rest = () => new Promise(resolve => setTimeout(resolve, pause));
  for (const user of ['ci-bot', 'anna', 'omar', ...['deployment-controller', 'replicaset-controller', 'node-controller'].map(name => `system:serviceaccount:kube-system:${name}`), ...['n1', 'n2', 'n3'].map(node => `system:node:${node}`)]) {
    await client.ok('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: `seed-${user.replaceAll(':', '-')}` }, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user }],
    });
  }
  for (const name of ['shop', 'payments', 'monitoring']) {
    await client.ok('POST', '/api/v1/namespaces', { metadata: { name, labels: { team: name } } }, omar);
  }
  for (const [index, name] of ['n1', 'n2', 'n3'].entries()) {
    await client.ok('POST', '/api/v1/nodes', { metadata: { name, labels: { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-${index % 2 ? 'b' : 'a'}`, 'node.kubernetes.io/instance-type': 'm7.large' } } }, controller('node-controller'));
    await client.ok('PATCH', `/api/v1/nodes/${name}/status`, { status: { capacity: { cpu: '4', memory: '16Gi', pods: '110' }, conditions: [{ type: 'Ready', status: index === 2 ? 'Unknown' : 'True', reason: index === 2 ? 'NodeStatusUnknown' : 'KubeletReady' }], nodeInfo: { kubeletVersion: 'v1.37.2', architecture: 'amd64', bootID: '', containerRuntimeVersion: 'containerd://2.2.0', kernelVersion: '6.18.3', kubeProxyVersion: '', machineID: '', operatingSystem: 'linux', osImage: 'Debian GNU/Linux 13', systemUUID: '' } } }, { ...strategic, ...kubelet(name), ...strategic });
  }
  for (const app of apps) {
    await rest();
    await deploy(client, ...app);
  }
  await rest();
  await client.ok('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'web-settings' }, data: { 'settings.yaml': 'currency: EUR\nfeatures:\n  search: true\n  wishlist: false\n', LOG_LEVEL: 'info' } }, ci);
  await client.ok('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'old-banner' }, data: { text: 'Winter sale' } }, omar);
  await client.ok('POST', '/api/v1/namespaces/payments/secrets', { metadata: { name: 'ledger-db' }, type: 'Opaque', stringData: { username: 'ledger', password: 'not-a-real-one' } }, ci);
  await client.ok('PATCH', '/api/v1/namespaces/shop/configmaps/web-settings', { data: { LOG_LEVEL: 'debug', 'settings.yaml': 'currency: EUR\nfeatures:\n  search: true\n  wishlist: true\n' } }, { ...merge, ...anna, type: merge.type });
  await rest();
  await client.ok('PATCH', '/apis/apps/v1/namespaces/shop/deployments/cart', { spec: { replicas: 3 } }, { ...anna, type: merge.type });
  await rest();
  await breakWeb(client);
  await rest();
  await client.ok('DELETE', '/api/v1/namespaces/shop/configmaps/old-banner', undefined, omar);
}

async function deploy(client, namespace, name, replicas, image) {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'app', image, ports: [{ containerPort: 8080 }], resources: { requests: { cpu: '100m', memory: '128Mi' } }, readinessProbe: { httpGet: { path: '/healthz', port: 8080 } } }] } };
  const deployment = await client.ok('POST', `/apis/apps/v1/namespaces/${namespace}/deployments`, { metadata: { name, labels: { ...labels, 'app.kubernetes.io/managed-by': 'Helm' }, annotations: { 'example.com/owner': `team-${namespace}` } }, spec: { replicas, selector: { matchLabels: labels }, template } }, ci);
  await client.ok('POST', `/api/v1/namespaces/${namespace}/services`, { metadata: { name, labels }, spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] } }, ci);
  await replicaSet(client, namespace, name, deployment, template, replicas, '5c9d8', true);
  await status(client, namespace, name, replicas, replicas);
}

async function replicaSet(client, namespace, name, deployment, template, replicas, hash, isGood) {
  const labels = { app: name, 'pod-template-hash': hash };
  const owner = (kind, { metadata }) => [{ apiVersion: 'apps/v1', kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: true }];
  const set = await client.ok('POST', `/apis/apps/v1/namespaces/${namespace}/replicasets`, { metadata: { name: `${name}-${hash}`, labels, ownerReferences: owner('Deployment', deployment) }, spec: { replicas, selector: { matchLabels: labels }, template: { ...template, metadata: { labels } } } }, controller('deployment-controller'));
  for (let index = 0; index < replicas; index += 1) {
    const node = `n${1 + (index + name.length) % 3}`;
    const pod = `${name}-${hash}-${'abcdefgh'[index]}${name.length}x${index}k`;
    await client.ok('POST', `/api/v1/namespaces/${namespace}/pods`, { metadata: { name: pod, labels, ownerReferences: owner('ReplicaSet', set) }, spec: { ...template.spec, nodeName: node } }, controller('replicaset-controller'));
    const state = isGood ? { running: { startedAt: new Date().toISOString().replace(/\.\d+Z/, 'Z') } } : { waiting: { reason: 'ImagePullBackOff', message: 'manifest unknown' } };
    await client.ok('PATCH', `/api/v1/namespaces/${namespace}/pods/${pod}/status`, { status: { phase: isGood ? 'Running' : 'Pending', podIP: `10.1.${index}.${name.length}`, podIPs: [{ ip: `10.1.${index}.${name.length}` }], hostIP: `10.0.0.${1 + index}`, startTime: new Date().toISOString().replace(/\.\d+Z/, 'Z'), conditions: [{ type: 'Ready', status: isGood ? 'True' : 'False' }], containerStatuses: [{ name: 'app', ready: isGood, started: isGood, restartCount: index, image: template.spec.containers[0].image, imageID: '', state }] } }, { ...kubelet(node), type: strategic.type });
    if (!isGood) {
      await client.ok('POST', `/api/v1/namespaces/${namespace}/events`, { metadata: { name: `${pod}.1` }, type: 'Warning', reason: 'Failed', message: `Failed to pull image "${template.spec.containers[0].image}": manifest unknown`, count: 4, involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name: pod }, reportingComponent: 'kubelet', reportingInstance: node, source: { component: 'kubelet', host: node }, firstTimestamp: new Date().toISOString().replace(/\.\d+Z/, 'Z'), lastTimestamp: new Date().toISOString().replace(/\.\d+Z/, 'Z') }, kubelet(node));
    }
  }
  await client.ok('POST', `/api/v1/namespaces/${namespace}/events`, { metadata: { name: `${name}.${hash}` }, type: 'Normal', reason: 'ScalingReplicaSet', message: `Scaled up replica set ${name}-${hash} to ${replicas}`, count: 1, involvedObject: { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name, uid: deployment.metadata.uid }, reportingComponent: 'deployment-controller', reportingInstance: 'kcm', source: { component: 'deployment-controller' }, firstTimestamp: new Date().toISOString().replace(/\.\d+Z/, 'Z'), lastTimestamp: new Date().toISOString().replace(/\.\d+Z/, 'Z') }, controller('deployment-controller'));
}

const status = (client, namespace, name, replicas, ready) => client.ok('PATCH', `/apis/apps/v1/namespaces/${namespace}/deployments/${name}/status`, { status: { replicas, readyReplicas: ready, availableReplicas: ready, updatedReplicas: replicas, observedGeneration: 1, conditions: [{ type: 'Available', status: ready === replicas ? 'True' : 'False', reason: ready === replicas ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable', message: '' }] } }, { ...controller('deployment-controller'), type: strategic.type });

/// Somebody puts out an image that does not exist.
async function breakWeb(client) {
  const deployment = await client.ok('PATCH', '/apis/apps/v1/namespaces/shop/deployments/web', { spec: { replicas: 5, template: { spec: { containers: [{ name: 'app', image: 'registry.example/shop/web:1.5.0-rc' }] } } } }, { ...anna, type: strategic.type });
  await replicaSet(client, 'shop', 'web', deployment, deployment.spec.template, 2, '7f4b1', false);
  for (const ready of [4, 3, 3]) await status(client, 'shop', 'web', 5, ready);
}
