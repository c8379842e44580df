#include "partner.hpp"

#include <cstdio>
#include <spawn.h>
#include <thread>
#include <unistd.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "caf/io/all.hpp"

using namespace caf;

void load_remoting(actor_system_config& config) {
    config.load<io::middleman>();
}

void host(size_t workers) {
    actor_system_config config;
    load_remoting(config);
    add_remote_actors(config);
    config.set("scheduler.max-threads", workers);
    actor_system system{config};
    auto port = system.middleman().open(0, "127.0.0.1");
    if (!port)
        throw wrong("it cannot listen: " + system.render(port.error()));
    std::printf("%u\n", static_cast<unsigned>(*port));
    std::fflush(stdout);
    for (;;)
        pause();
}

partner start_partner(stage& s) {
    // Its input, which is closed when this process ends, and its output.
    int input[2];
    int output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        throw wrong("there is no pipe to the other process");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    auto workers = std::to_string(get_or(s.system.config(), "scheduler.max-threads", size_t{1}));
    std::string program = "caf";
    std::string word = "partner";
    char* words[] = {program.data(), word.data(), workers.data(), nullptr};
    pid_t process;
    if (posix_spawn(&process, "/proc/self/exe", &actions, nullptr, words, environ) != 0)
        throw wrong("the other process cannot be started");
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    unsigned port = 0;
    auto out = fdopen(output[0], "r");
    if (out == nullptr || std::fscanf(out, "%u", &port) != 1)
        throw wrong("the other process does not say where it listens");
    std::thread([process] {
        waitpid(process, nullptr, 0);
        std::fputs("the other process has ended\n", stderr);
        std::_Exit(1);
    }).detach();
    auto node = s.system.middleman().connect("127.0.0.1", static_cast<uint16_t>(port));
    if (!node)
        throw wrong("the other process is not reached: " + s.system.render(node.error()));
    return {*node, static_cast<uint16_t>(port)};
}
