// What the workloads on CAF share: the system, how the final state is told, and how much is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "caf/all.hpp"

using clock_type = std::chrono::steady_clock;

// Has an actor begin, or go on.
using begin_atom = caf::atom_constant<caf::atom("begin")>;
// An actor is done, with a number for the sum.
using done_atom = caf::atom_constant<caf::atom("done")>;
// The other members.
using meet_atom = caf::atom_constant<caf::atom("meet")>;

using actors = std::vector<caf::actor>;
using actors_ptr = std::shared_ptr<const actors>;
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(actors_ptr)

// Messages that an actor with a long list to send sends before it lets others run and goes on by a message to itself.
constexpr uint64_t slice = 1'000;

struct finished {
    clock_type::time_point at;
    uint64_t result;
};

// Held by the actor that reaches the final state.
using finish = std::shared_ptr<std::promise<finished>>;

inline void reached(const finish& finish, uint64_t result) {
    finish->set_value({clock_type::now(), result});
}

struct wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// One run of a workload.
struct stage {
    caf::actor_system& system;
    bool smoke;
    finish end = std::make_shared<std::promise<finished>>();
    std::chrono::nanoseconds elapsed{0};

    uint64_t pick(uint64_t small, uint64_t full) const {
        return smoke ? small : full;
    }

    // Calls start and waits for the final state.
    void time(uint64_t expected, const std::function<void()>& start) {
        auto ended = end->get_future();
        auto started = clock_type::now();
        start();
        auto [at, result] = ended.get();
        if (result != expected)
            throw wrong("wrong: the result should be " + std::to_string(expected) + " and is " + std::to_string(result));
        elapsed = at - started;
    }
};

// Waits until so many are done.
class judge : public caf::event_based_actor {
public:
    judge(caf::actor_config& config, finish end, uint64_t missing)
        : event_based_actor(config), end_(std::move(end)), missing_(missing) {}

    caf::behavior make_behavior() override {
        return {[this](done_atom, uint64_t number) {
            sum_ += number;
            if (--missing_ == 0) {
                reached(end_, sum_);
                quit();
            }
        }};
    }

private:
    finish end_;
    uint64_t missing_;
    uint64_t sum_ = 0;
};

// Each plays a workload and returns the number of operations.
uint64_t count(stage&);
uint64_t pingpong(stage&);
uint64_t rings(stage&, uint64_t rings, uint64_t members, uint64_t hops);
uint64_t executor(stage&);
uint64_t repeat(stage&);
uint64_t fjcreate(stage&);
uint64_t skynet(stage&);
uint64_t fib(stage&);
uint64_t chameneos(stage&);
uint64_t big(stage&);
uint64_t rpingpong(stage&);
uint64_t rthroughput(stage&);
uint64_t rcreate(stage&);
uint64_t rrings(stage&, uint64_t rings);
