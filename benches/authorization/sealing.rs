//! What encryption at rest adds to a write: sealing the value of a Secret of 2 KiB, by provider.

use std::collections::HashSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowplane::codec::object::Draft;
use rowplane::encryption::configuration::Reload;
use rowplane::encryption::{Config, Encryption, Opening};
use rowplane::runtime::Runtime;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{Key, Registry as _, memory};
use rowplane::tree::{Text, json};

use crate::timing::{Measured, measure};

const SIZE: usize = 2048;

pub async fn sealing(duration: Duration) {
    let directory = tempfile::tempdir().expect("a directory");
    let content = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "t"},
        "data": {"k": STANDARD.encode(vec![b'x'; SIZE])}});
    let draft = Draft::of_json("t", "s", content.to_string().into());
    let mut lines: Vec<(&str, Measured)> =
        vec![("copying the draft, in all below", measure(duration, || draft.clone()))];
    for provider in ["identity", "aescbc", "aesgcm", "secretbox"] {
        let keys = match provider {
            "identity" => "{}".to_owned(),
            _ => format!("{{keys: [{{name: k, secret: {}}}]}}", STANDARD.encode([7; 32])),
        };
        let file = directory.path().join(provider);
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers: [{{{provider}: {keys}}}]\n"
        );
        std::fs::write(&file, text).expect("written");
        let config = Config { file, reload: Reload::No };
        let backend = memory::open();
        let built_in = HashSet::from([Text::from("")]);
        let encryption = Encryption::start(&config, backend.clone(), built_in, Runtime::default());
        let encryption = encryption.await.expect("a configuration");
        let opening = Opening { inner: backend, encryption: encryption.clone() };
        let id = opening.resource_ids(&[GroupResource::new("", "secrets")]).await.expect("an id")[0];
        let key = Key::new(id, "t", "s");
        let sealed = encryption.seal(&key, draft.clone()).expect("sealed");
        assert_eq!(sealed.value().starts_with(b"k8s:enc:"), provider != "identity");
        lines.push((provider, measure(duration, || encryption.seal(&key, draft.clone()).expect("sealed"))));
    }
    println!("sealing a Secret of {SIZE} bytes, by provider");
    Measured::print(&lines);
}
