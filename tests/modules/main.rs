//! Tests of modules through their public items, in a file for each module, and of the sources themselves.

mod http_documents_discovery;
mod http_door_cors;
mod http_health;
mod http_limits_bodies;
mod layers;
