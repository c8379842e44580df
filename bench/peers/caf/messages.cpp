// Workloads of existing actors that send messages.
#include <algorithm>

#include "workloads.hpp"

using namespace caf;

namespace {

using increment_atom = atom_constant<atom("increment")>;
using get_atom = atom_constant<atom("get")>;
using ping_atom = atom_constant<atom("ping")>;
using token_atom = atom_constant<atom("token")>;
using request_atom = atom_constant<atom("request")>;

class counter : public event_based_actor {
public:
    explicit counter(actor_config& config) : event_based_actor(config) {}

    behavior make_behavior() override {
        return {
            [this](increment_atom) { ++count_; },
            [this](get_atom, const actor& who) { send(who, done_atom::value, count_); },
        };
    }

private:
    uint64_t count_ = 0;
};

class producer : public event_based_actor {
public:
    producer(actor_config& config, finish end, actor counter, uint64_t left)
        : event_based_actor(config), end_(std::move(end)), counter_(std::move(counter)), left_(left) {}

    behavior make_behavior() override {
        return {
            [this](begin_atom) {
                auto now = std::min(left_, slice);
                for (uint64_t i = 0; i < now; ++i)
                    send(counter_, increment_atom::value);
                left_ -= now;
                if (left_ > 0)
                    send(this, begin_atom::value);
                else
                    send(counter_, get_atom::value, actor{this});
            },
            [this](done_atom, uint64_t count) { reached(end_, count); },
        };
    }

private:
    finish end_;
    actor counter_;
    uint64_t left_;
};

// One of two has an end, and counts for both.
class player : public event_based_actor {
public:
    player(actor_config& config, finish end, actor other, uint64_t rounds)
        : event_based_actor(config), end_(std::move(end)), other_(std::move(other)), rounds_(rounds) {}

    behavior make_behavior() override {
        return {
            [this](meet_atom, actor& other) { other_ = std::move(other); },
            [this](ping_atom) {
                // The first one starts it and is not counted.
                if (received_++ == rounds_ && end_)
                    reached(end_, received_ - 1);
                else
                    send(other_, ping_atom::value);
            },
        };
    }

private:
    finish end_;
    actor other_;
    uint64_t rounds_;
    uint64_t received_ = 0;
};

class member : public event_based_actor {
public:
    member(actor_config& config, actor judge, actor next, uint64_t position)
        : event_based_actor(config), judge_(std::move(judge)), next_(std::move(next)), position_(position) {}

    behavior make_behavior() override {
        return {
            [this](meet_atom, actor& first) { next_ = std::move(first); },
            [this](token_atom, uint64_t left) {
                if (left > 0)
                    send(next_, token_atom::value, left - 1);
                else
                    send(judge_, done_atom::value, position_);
            },
        };
    }

private:
    actor judge_;
    actor next_;
    uint64_t position_;
};

class flooder : public event_based_actor {
public:
    flooder(actor_config& config, actor judge, uint64_t sends)
        : event_based_actor(config), judge_(std::move(judge)), sends_left_(sends), recs_left_(sends + 1) {}

    behavior make_behavior() override {
        return {
            [this](meet_atom, const actors_ptr& group) { group_ = group; },
            [this](begin_atom) {
                for (auto& member : *group_)
                    send(member, token_atom::value);
            },
            [this](token_atom) {
                if (sends_left_ > 0) {
                    --sends_left_;
                    send((*group_)[next_], token_atom::value);
                    next_ = next_ + 1 < group_->size() ? next_ + 1 : 0;
                }
                if (--recs_left_ == 0)
                    send(judge_, done_atom::value, sends_left_);
            },
        };
    }

private:
    actor judge_;
    actors_ptr group_;
    size_t next_ = 0;
    uint64_t sends_left_;
    // Messages still to come: one per send of its share, and the start message.
    uint64_t recs_left_;
};

class server : public event_based_actor {
public:
    server(actor_config& config, actor client) : event_based_actor(config), client_(std::move(client)) {}

    behavior make_behavior() override {
        return {[this](request_atom) { send(client_, done_atom::value, ++requests_); }};
    }

private:
    actor client_;
    uint64_t requests_ = 0;
};

class client : public event_based_actor {
public:
    client(actor_config& config, finish end, uint64_t rounds)
        : event_based_actor(config), end_(std::move(end)), rounds_left_(rounds) {}

    behavior make_behavior() override {
        return {
            [this](meet_atom, const actors_ptr& servers) { servers_ = servers; },
            [this](begin_atom) {
                auto until = std::min<size_t>(sent_ + slice, servers_->size());
                for (; sent_ < until; ++sent_)
                    send((*servers_)[sent_], request_atom::value);
                if (sent_ < servers_->size())
                    send(this, begin_atom::value);
            },
            [this](done_atom, uint64_t requests) {
                sum_ += requests;
                if (++replies_ < servers_->size())
                    return;
                sent_ = 0;
                replies_ = 0;
                if (--rounds_left_ > 0)
                    send(this, begin_atom::value);
                else
                    reached(end_, sum_);
            },
        };
    }

private:
    finish end_;
    actors_ptr servers_;
    size_t sent_ = 0;
    size_t replies_ = 0;
    uint64_t rounds_left_;
    uint64_t sum_ = 0;
};

} // namespace

uint64_t count(stage& s) {
    auto increments = s.pick(10'000, 10'000'000);
    auto to = s.system.spawn<counter>();
    auto from = s.system.spawn<producer>(s.end, to, increments);
    s.time(increments, [&] { anon_send(from, begin_atom::value); });
    return increments;
}

uint64_t pingpong(stage& s) {
    auto rounds = s.pick(2'000, 2'000'000);
    auto pinger = s.system.spawn<player>(s.end, actor{}, rounds);
    auto ponger = s.system.spawn<player>(finish{}, pinger, rounds);
    anon_send(pinger, meet_atom::value, ponger);
    s.time(rounds, [&] { anon_send(pinger, ping_atom::value); });
    return 2 * rounds;
}

uint64_t rings(stage& s, uint64_t rings, uint64_t members, uint64_t hops) {
    auto end = s.system.spawn<judge>(s.end, rings);
    actors firsts;
    for (uint64_t ring = 0; ring < rings; ++ring) {
        auto last = s.system.spawn<member>(end, actor{}, members - 1);
        auto first = last;
        for (auto position = members - 1; position > 0; --position)
            first = s.system.spawn<member>(end, first, position - 1);
        anon_send(last, meet_atom::value, first);
        firsts.push_back(first);
    }
    s.time(rings * (hops % members), [&] {
        for (auto& first : firsts)
            anon_send(first, token_atom::value, hops);
    });
    return rings * hops;
}

uint64_t executor(stage& s) {
    constexpr uint64_t group_size = 100;
    auto groups = s.pick(4, 400);
    auto sends = s.pick(100, 400);
    auto end = s.system.spawn<judge>(s.end, groups * group_size);
    actors firsts;
    for (uint64_t number = 0; number < groups; ++number) {
        auto group = std::make_shared<actors>();
        for (uint64_t i = 0; i < group_size; ++i)
            group->push_back(s.system.spawn<flooder>(end, sends));
        for (auto& member : *group)
            anon_send(member, meet_atom::value, actors_ptr{group});
        firsts.push_back(group->front());
    }
    s.time(0, [&] {
        for (auto& first : firsts)
            anon_send(first, begin_atom::value);
    });
    return groups * group_size * sends;
}

uint64_t repeat(stage& s) {
    auto servers = s.pick(2'500, 100'000);
    auto rounds = s.pick(4, 40);
    auto from = s.system.spawn<client>(s.end, rounds);
    auto all = std::make_shared<actors>();
    for (uint64_t i = 0; i < servers; ++i)
        all->push_back(s.system.spawn<server>(from));
    anon_send(from, meet_atom::value, actors_ptr{all});
    s.time(servers * (rounds * (rounds + 1) / 2), [&] { anon_send(from, begin_atom::value); });
    return 2 * servers * rounds;
}
