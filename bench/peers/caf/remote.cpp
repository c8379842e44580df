// Workloads of several processes.
#include <algorithm>

#include "partner.hpp"

#include "caf/io/all.hpp"

using namespace caf;

namespace {

using ping_atom = atom_constant<atom("ping")>;
using pong_atom = atom_constant<atom("pong")>;
using seen_atom = atom_constant<atom("seen")>;
using item_atom = atom_constant<atom("item")>;
using took_atom = atom_constant<atom("took")>;
using created_atom = atom_constant<atom("created")>;
using hop_atom = atom_constant<atom("hop")>;

constexpr uint64_t window = 10'000;
constexpr uint64_t acknowledge = 1'000;

class ponger : public event_based_actor {
public:
    explicit ponger(actor_config& config) : event_based_actor(config) {}

    behavior make_behavior() override {
        return {
            [this](ping_atom, uint64_t left, const actor& from) {
                ++seen_;
                send(from, pong_atom::value, left);
            },
            [this](seen_atom, const actor& judge) { send(judge, done_atom::value, seen_); },
        };
    }

private:
    uint64_t seen_ = 0;
};

class pinger : public event_based_actor {
public:
    pinger(actor_config& config, finish end, actor ponger, uint64_t rounds)
        : event_based_actor(config), end_(std::move(end)), ponger_(std::move(ponger)), rounds_(rounds) {}

    behavior make_behavior() override {
        return {
            [this](begin_atom) { send(ponger_, ping_atom::value, rounds_, actor{this}); },
            [this](pong_atom, uint64_t left) {
                if (left == 1)
                    reached(end_, 0);
                else
                    send(ponger_, ping_atom::value, left - 1, actor{this});
            },
        };
    }

private:
    finish end_;
    actor ponger_;
    uint64_t rounds_;
};

class sink : public event_based_actor {
public:
    sink(actor_config& config, actor source) : event_based_actor(config), source_(std::move(source)) {}

    behavior make_behavior() override {
        return {[this](item_atom, uint64_t number) {
            sum_ += number;
            if (++count_ % acknowledge == 0)
                send(source_, took_atom::value, sum_, count_);
        }};
    }

private:
    actor source_;
    uint64_t sum_ = 0;
    uint64_t count_ = 0;
};

class source : public event_based_actor {
public:
    source(actor_config& config, finish end, uint64_t messages)
        : event_based_actor(config), end_(std::move(end)), messages_(messages) {}

    behavior make_behavior() override {
        return {
            [this](meet_atom, actor& sink) { sink_ = std::move(sink); },
            [this](begin_atom) { flow(window); },
            [this](took_atom, uint64_t sum, uint64_t count) {
                if (count == messages_)
                    reached(end_, sum);
                else
                    flow(acknowledge);
            },
        };
    }

private:
    void flow(uint64_t count) {
        auto until = std::min(sent_ + count, messages_);
        while (sent_ < until)
            send(sink_, item_atom::value, ++sent_);
    }

    finish end_;
    actor sink_;
    uint64_t messages_;
    uint64_t sent_ = 0;
};

class settler : public event_based_actor {
public:
    settler(actor_config& config, actor master) : event_based_actor(config), master_(std::move(master)) {}

    behavior make_behavior() override {
        send(master_, created_atom::value);
        return {[](done_atom) {}};
    }

private:
    actor master_;
};

// Has the actors spawned all at once: `remote_spawn` would wait for each.
class settling : public event_based_actor {
public:
    settling(actor_config& config, finish end, node_id node, uint64_t actors)
        : event_based_actor(config), end_(std::move(end)), node_(std::move(node)), actors_(actors) {}

    behavior make_behavior() override {
        return {
            [this](begin_atom) {
                auto spawner = system().middleman().actor_handle();
                for (uint64_t i = 0; i < actors_; ++i)
                    request(spawner, infinite, spawn_atom::value, node_, std::string{"settler"}, make_message(actor{this}),
                            std::set<std::string>{})
                        .then([this](strong_actor_ptr& made) { made_.push_back(std::move(made)); });
            },
            [this](created_atom) {
                if (++created_ == actors_)
                    reached(end_, created_);
            },
        };
    }

private:
    finish end_;
    node_id node_;
    uint64_t actors_;
    uint64_t created_ = 0;
    std::vector<strong_actor_ptr> made_;
};

// The member of a ring in this process.
class head : public event_based_actor {
public:
    head(actor_config& config, actor judge) : event_based_actor(config), judge_(std::move(judge)) {}

    behavior make_behavior() override {
        return {
            [this](meet_atom, actor& next) { next_ = std::move(next); },
            [this](hop_atom, uint64_t left) {
                if (left > 0)
                    send(next_, hop_atom::value, left - 1);
                else
                    send(judge_, done_atom::value, uint64_t{0});
            },
        };
    }

private:
    actor judge_;
    actor next_;
};

// One in another.
class hopper : public event_based_actor {
public:
    hopper(actor_config& config, actor next) : event_based_actor(config), next_(std::move(next)) {}

    behavior make_behavior() override {
        return {
            [this](hop_atom, uint64_t left) {
                ++hops_;
                send(next_, hop_atom::value, left - 1);
            },
            [this](seen_atom, const actor& judge) { send(judge, done_atom::value, hops_); },
        };
    }

private:
    actor next_;
    uint64_t hops_ = 0;
};

class connector : public event_based_actor {
public:
    explicit connector(actor_config& config) : event_based_actor(config) {}

    behavior make_behavior() override {
        return {[this](uint16_t port) { return static_cast<bool>(system().middleman().connect("127.0.0.1", port)); }};
    }
};

// Spawns an actor in another process, and waits for it.
actor spawn_at(stage& s, const node_id& node, const char* name, message arguments) {
    auto spawned = s.system.middleman().remote_spawn<actor>(node, name, std::move(arguments));
    if (!spawned)
        throw wrong(std::string{"no "} + name + " is spawned there: " + s.system.render(spawned.error()));
    return *spawned;
}

// Has a node talk to another one itself: it would do so by way of this one.
void connect(stage& s, const node_id& node, uint16_t port) {
    auto connecting = spawn_at(s, node, "connector", make_message());
    scoped_actor self{s.system};
    self->request(connecting, infinite, port)
        .receive([](bool connected) { if (!connected) throw wrong("two of the others do not reach each other"); },
                 [&](error& error) { throw wrong("another process: " + s.system.render(error)); });
}

} // namespace

void add_remote_actors(actor_system_config& config) {
    config.add_actor_type<ponger>("ponger");
    config.add_actor_type<sink, const actor&>("sink");
    config.add_actor_type<settler, const actor&>("settler");
    config.add_actor_type<connector>("connector");
    config.add_actor_type<hopper, const actor&>("hopper");
}

uint64_t rpingpong(stage& s) {
    auto rounds = s.pick(200, 100'000);
    auto to = spawn_at(s, start_partner(s).node, "ponger", make_message());
    auto from = s.system.spawn<pinger>(s.end, to, rounds);
    s.time(0, [&] { anon_send(from, begin_atom::value); });
    auto elapsed = s.elapsed;
    s.end = std::make_shared<std::promise<finished>>();
    auto reports = s.system.spawn<judge>(s.end, 1);
    s.time(rounds, [&] { anon_send(to, seen_atom::value, reports); });
    s.elapsed = elapsed;
    return 2 * rounds;
}

uint64_t rthroughput(stage& s) {
    auto messages = s.pick(20'000, 2'000'000);
    auto node = start_partner(s).node;
    auto from = s.system.spawn<source>(s.end, messages);
    anon_send(from, meet_atom::value, spawn_at(s, node, "sink", make_message(from)));
    s.time(messages * (messages + 1) / 2, [&] { anon_send(from, begin_atom::value); });
    return messages;
}

uint64_t rcreate(stage& s) {
    auto actors = s.pick(100, 5'000);
    auto master = s.system.spawn<settling>(s.end, start_partner(s).node, actors);
    s.time(actors, [&] { anon_send(master, begin_atom::value); });
    return actors;
}

uint64_t rrings(stage& s, uint64_t rings) {
    auto rounds = s.pick(20, 1'000);
    const std::vector<partner> partners{start_partner(s), start_partner(s), start_partner(s)};
    for (size_t i = 0; i + 1 < partners.size(); ++i)
        connect(s, partners[i].node, partners[i + 1].port);
    auto end = s.system.spawn<judge>(s.end, rings);
    actors heads;
    actors hoppers;
    for (uint64_t ring = 0; ring < rings; ++ring) {
        auto first = s.system.spawn<head>(end);
        auto next = first;
        for (auto there = partners.rbegin(); there != partners.rend(); ++there) {
            next = spawn_at(s, there->node, "hopper", make_message(next));
            hoppers.push_back(next);
        }
        anon_send(first, meet_atom::value, next);
        heads.push_back(std::move(first));
    }
    auto hops = rounds * (partners.size() + 1);
    s.time(0, [&] {
        for (auto& one : heads)
            anon_send(one, hop_atom::value, hops);
    });
    auto elapsed = s.elapsed;
    s.end = std::make_shared<std::promise<finished>>();
    auto reports = s.system.spawn<judge>(s.end, hoppers.size());
    s.time(rounds * hoppers.size(), [&] {
        for (auto& one : hoppers)
            anon_send(one, seen_atom::value, reports);
    });
    s.elapsed = elapsed;
    return rings * hops;
}
