// Workloads that create actors.
#include <algorithm>

#include "workloads.hpp"

using namespace caf;

namespace {

using work_atom = atom_constant<atom("work")>;

class child : public event_based_actor {
public:
    child(actor_config& config, actor master) : event_based_actor(config), master_(std::move(master)) {}

    behavior make_behavior() override {
        return {[this](work_atom, uint64_t number) {
            send(master_, done_atom::value, 2 * number);
            quit();
        }};
    }

private:
    actor master_;
};

class master : public event_based_actor {
public:
    master(actor_config& config, finish end, uint64_t count)
        : event_based_actor(config), end_(std::move(end)), count_(count) {
        children_.reserve(count);
    }

    behavior make_behavior() override {
        return {
            [this](begin_atom) {
                if (children_.size() < count_) {
                    auto until = std::min(children_.size() + slice, count_);
                    while (children_.size() < until)
                        children_.push_back(spawn<child>(actor{this}));
                    send(this, begin_atom::value);
                    return;
                }
                auto until = std::min(employed_ + slice, count_);
                for (; employed_ < until; ++employed_) {
                    send(children_[employed_], work_atom::value, employed_);
                    // Who is referred to is not freed when it ends.
                    children_[employed_] = actor{};
                }
                if (employed_ < count_)
                    send(this, begin_atom::value);
            },
            [this](done_atom, uint64_t result) {
                sum_ += result;
                if (++done_ == count_)
                    reached(end_, sum_);
            },
        };
    }

private:
    finish end_;
    uint64_t count_;
    actors children_;
    uint64_t employed_ = 0;
    uint64_t done_ = 0;
    uint64_t sum_ = 0;
};

class node : public event_based_actor {
public:
    node(actor_config& config, actor parent, uint64_t number, uint64_t leaves)
        : event_based_actor(config), parent_(std::move(parent)), number_(number), leaves_(leaves) {}

    behavior make_behavior() override {
        if (leaves_ == 1) {
            send(parent_, done_atom::value, number_);
            return {};
        }
        auto below = leaves_ / degree;
        for (uint64_t child = 0; child < degree; ++child)
            spawn<node>(actor{this}, number_ + child * below, below);
        return {[this](done_atom, uint64_t sum) {
            sum_ += sum;
            if (--missing_ == 0) {
                send(parent_, done_atom::value, sum_);
                quit();
            }
        }};
    }

    static constexpr uint64_t degree = 10;

private:
    actor parent_;
    uint64_t number_;
    uint64_t leaves_;
    uint64_t missing_ = degree;
    uint64_t sum_ = 0;
};

class call : public event_based_actor {
public:
    call(actor_config& config, actor parent, uint64_t n) : event_based_actor(config), parent_(std::move(parent)), n_(n) {}

    behavior make_behavior() override {
        if (n_ < 2) {
            send(parent_, done_atom::value, n_);
            return {};
        }
        spawn<call>(actor{this}, n_ - 1);
        spawn<call>(actor{this}, n_ - 2);
        return {[this](done_atom, uint64_t value) {
            value_ += value;
            if (--missing_ == 0) {
                send(parent_, done_atom::value, value_);
                quit();
            }
        }};
    }

private:
    actor parent_;
    uint64_t n_;
    uint64_t missing_ = 2;
    uint64_t value_ = 0;
};

// The Fibonacci number of n, and how many calls its naive computation has.
std::pair<uint64_t, uint64_t> calls(uint64_t n) {
    if (n < 2)
        return {n, 1};
    auto [first, first_calls] = calls(n - 1);
    auto [second, second_calls] = calls(n - 2);
    return {first + second, first_calls + second_calls + 1};
}

} // namespace

uint64_t fjcreate(stage& s) {
    auto count = s.pick(2'000, 1'000'000);
    auto from = s.system.spawn<master>(s.end, count);
    s.time(count * (count - 1), [&] { anon_send(from, begin_atom::value); });
    return count;
}

uint64_t skynet(stage& s) {
    auto leaves = s.pick(1'000, 1'000'000);
    auto end = s.system.spawn<judge>(s.end, 1);
    s.time(leaves * (leaves - 1) / 2, [&] { s.system.spawn<node>(end, 0, leaves); });
    return (leaves * node::degree - 1) / (node::degree - 1);
}

uint64_t fib(stage& s) {
    auto n = s.pick(10, 25);
    auto [value, count] = calls(n);
    auto end = s.system.spawn<judge>(s.end, 1);
    s.time(value, [&] { s.system.spawn<call>(end, n); });
    return count;
}
