// Workloads whose actors meet.
#include "workloads.hpp"

using namespace caf;

namespace {

using enter_atom = atom_constant<atom("enter")>;
using met_atom = atom_constant<atom("met")>;
using closed_atom = atom_constant<atom("closed")>;
using ping_atom = atom_constant<atom("ping")>;
using pong_atom = atom_constant<atom("pong")>;
using report_atom = atom_constant<atom("report")>;

class mall : public event_based_actor {
public:
    mall(actor_config& config, uint64_t left) : event_based_actor(config), left_(left) {}

    behavior make_behavior() override {
        return {[this](enter_atom, actor& who, uint8_t colour) {
            if (left_ == 0) {
                send(who, closed_atom::value);
            } else if (waiting_) {
                send(waiting_, met_atom::value, colour);
                send(who, met_atom::value, waiting_colour_);
                waiting_ = actor{};
                --left_;
            } else {
                waiting_ = std::move(who);
                waiting_colour_ = colour;
            }
        }};
    }

private:
    uint64_t left_;
    actor waiting_;
    uint8_t waiting_colour_ = 0;
};

// Of one of the colours 0, 1, 2.
class creature : public event_based_actor {
public:
    creature(actor_config& config, actor judge, actor mall, uint8_t colour)
        : event_based_actor(config), judge_(std::move(judge)), mall_(std::move(mall)), colour_(colour) {}

    behavior make_behavior() override {
        return {
            [this](begin_atom) { enter(); },
            [this](met_atom, uint8_t other) {
                // The third colour, or no other if both are alike.
                if (other != colour_)
                    colour_ = static_cast<uint8_t>(3 - colour_ - other);
                ++meetings_;
                enter();
            },
            [this](closed_atom) { send(judge_, done_atom::value, meetings_); },
        };
    }

private:
    void enter() {
        send(mall_, enter_atom::value, actor{this}, colour_);
    }

    actor judge_;
    actor mall_;
    uint8_t colour_;
    uint64_t meetings_ = 0;
};

class talker : public event_based_actor {
public:
    talker(actor_config& config, actor judge, uint32_t number, uint64_t left)
        : event_based_actor(config), judge_(std::move(judge)), number_(number), dice_(number * 0x9E3779B9U), left_(left) {}

    behavior make_behavior() override {
        return {
            [this](meet_atom, const actors_ptr& all) { all_ = all; },
            [this](begin_atom) { ping(); },
            [this](ping_atom, const actor& from) {
                ++pinged_;
                send(from, pong_atom::value);
            },
            [this](pong_atom) {
                if (--left_ > 0)
                    ping();
                else
                    send(judge_, done_atom::value, uint64_t{0});
            },
            [this](report_atom, const actor& judge) { send(judge, done_atom::value, pinged_); },
        };
    }

    static constexpr uint32_t count = 120;

private:
    // A linear congruential generator of 32 bits chooses the receiver.
    void ping() {
        dice_ = dice_ * 1'664'525U + 1'013'904'223U;
        auto step = static_cast<uint32_t>((uint64_t{dice_} * (count - 1)) >> 32);
        send((*all_)[(number_ + 1 + step) % count], ping_atom::value, actor{this});
    }

    actor judge_;
    actors_ptr all_;
    uint32_t number_;
    uint32_t dice_;
    uint64_t left_;
    uint64_t pinged_ = 0;
};

} // namespace

uint64_t chameneos(stage& s) {
    constexpr uint8_t creatures = 10;
    auto meetings = s.pick(1'000, 2'000'000);
    auto end = s.system.spawn<judge>(s.end, creatures);
    auto at = s.system.spawn<mall>(meetings);
    actors all;
    for (uint8_t number = 0; number < creatures; ++number)
        all.push_back(s.system.spawn<creature>(end, at, static_cast<uint8_t>(number % 3)));
    s.time(2 * meetings, [&] {
        for (auto& one : all)
            anon_send(one, begin_atom::value);
    });
    return meetings;
}

uint64_t big(stage& s) {
    auto pings = s.pick(20, 20'000);
    auto end = s.system.spawn<judge>(s.end, talker::count);
    auto all = std::make_shared<actors>();
    for (uint32_t number = 0; number < talker::count; ++number)
        all->push_back(s.system.spawn<talker>(end, number, pings));
    for (auto& one : *all)
        anon_send(one, meet_atom::value, actors_ptr{all});
    s.time(0, [&] {
        for (auto& one : *all)
            anon_send(one, begin_atom::value);
    });
    auto elapsed = s.elapsed;
    s.end = std::make_shared<std::promise<finished>>();
    auto reports = s.system.spawn<judge>(s.end, talker::count);
    s.time(talker::count * pings, [&] {
        for (auto& one : *all)
            anon_send(one, report_atom::value, reports);
    });
    s.elapsed = elapsed;
    return 2 * talker::count * pings;
}
