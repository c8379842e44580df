// The other process of the remote workloads.
#pragma once

#include "workloads.hpp"

// Says where it listens; never returns.
[[noreturn]] void host(size_t workers);

// Starts the other process, which ends with this one, and connects to it.
caf::node_id start_partner(stage&);

// What a system has where its actors are reached from elsewhere; the actors that the other process spawns.
void load_remoting(caf::actor_system_config&);
void add_remote_actors(caf::actor_system_config&);
