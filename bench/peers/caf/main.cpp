// The workloads on CAF, the C++ actor framework: classes of event-based actors, on its work-stealing scheduler.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>

#include <unistd.h>

#include "partner.hpp"

namespace {

[[noreturn]] void fail(const std::string& text) {
    std::cerr << text << std::endl;
    std::_Exit(1);
}

const std::map<std::string, uint64_t (*)(stage&)> workloads = {
    {"count", count},
    {"pingpong", pingpong},
    {"threadring", [](stage& s) { return rings(s, 1, 503, s.pick(5'000, 5'000'000)); }},
    {"ringmulti", [](stage& s) { return rings(s, s.pick(10, 100), s.pick(20, 100), s.pick(500, 100'000)); }},
    {"fjcreate", fjcreate},
    {"skynet", skynet},
    {"chameneos", chameneos},
    {"big", big},
    {"fib", fib},
    {"executor", executor},
    {"repeat", repeat},
};

const std::map<std::string, uint64_t (*)(stage&)> remote_workloads = {
    {"rpingpong", rpingpong},
    {"rthroughput", rthroughput},
    {"rcreate", rcreate},
    {"rrings-1", [](stage& s) { return rrings(s, 1); }},
    {"rrings-32", [](stage& s) { return rrings(s, s.pick(4, 32)); }},
    {"rrings-320", [](stage& s) { return rrings(s, s.pick(4, 320)); }},
};

// Ends the process with its standard input, whatever the others are at.
void listen() {
    char bytes[64];
    while (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0) {
    }
    // Who is left need not be torn down.
    std::_Exit(0);
}

} // namespace

int main(int argc, char** argv) {
    std::thread listener{listen};
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 2 && words[0] == "partner") {
        try {
            host(static_cast<size_t>(std::atoi(words[1].c_str())));
        } catch (const wrong& error) {
            fail(error.what());
        }
    }
    if (words.size() != 5 || words[1] != "--size" || (words[2] != "smoke" && words[2] != "default")
        || words[3] != "--workers" || std::atoi(words[4].c_str()) < 1)
        fail("usage: caf WORKLOAD --size smoke|default --workers N");
    auto remote = remote_workloads.find(words[0]);
    auto is_remote = remote != remote_workloads.end();
    auto workload = is_remote ? remote : workloads.find(words[0]);
    if (!is_remote && workload == workloads.end())
        fail("there is no workload `" + words[0] + "`");
    caf::actor_system_config config;
    // In this version a stealing worker walks along the whole queue of its victim: with very many actors at once, workers that share
    // one queue are faster.
    if (words[0] == "fjcreate" || words[0] == "repeat")
        config.set("scheduler.policy", caf::atom("sharing"));
    if (is_remote)
        load_remoting(config);
    config.set("scheduler.max-threads", static_cast<size_t>(std::atoi(words[4].c_str())));
    caf::actor_system system{config};
    stage stage{system, words[2] == "smoke"};
    try {
        auto ops = workload->second(stage);
        std::printf("{\"peer\":\"caf\",\"version\":\"%d.%d.%d\",\"workload\":\"%s\",\"ops\":%llu,\"ns\":%lld}\n", CAF_MAJOR_VERSION,
                    CAF_MINOR_VERSION, CAF_PATCH_VERSION, words[0].c_str(), static_cast<unsigned long long>(ops),
                    static_cast<long long>(stage.elapsed.count()));
    } catch (const wrong& error) {
        fail(error.what());
    }
    std::fflush(stdout);
    // Its memory is looked at until its input ends.
    listener.join();
}
