// The other processes of the remote workloads.
#pragma once

#include "workloads.hpp"

// Another process, and where it listens.
struct partner {
    caf::node_id node;
    uint16_t port;
};

// Says where it listens; never returns.
[[noreturn]] void host(size_t workers);

// Starts another process, which ends with this one, and connects to it.
partner start_partner(stage&);

// Loads the remoting of a system, and adds the actors that other processes spawn.
void load_remoting(caf::actor_system_config&);
void add_remote_actors(caf::actor_system_config&);
