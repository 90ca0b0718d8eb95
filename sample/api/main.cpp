// Prepares the servers of a project, trains on two of them, follows rank 0, and says what became of the
// launch. Usage: train PROJECT_FOLDER [COMMAND]

#include <chrono>
#include <csignal>
#include <future>
#include <iostream>

#include <remote/project.hpp>

namespace {

remote::Cancel stopped;  // by Ctrl-C: every call ends

void tell(const remote::Event& event) {
  if (const auto* failed = std::get_if<remote::PartsFailed>(&event)) {
    for (const remote::Error& error : failed->errors) {
      std::cerr << error.message() << '\n';
    }
  } else if (const auto* launched = std::get_if<remote::Launched>(&event)) {
    std::cerr << launched->result.jobs.size() << " ranks, master " << launched->result.plan.master_addr
              << '\n';
  }
}

// What a command prints on a server, if it does within this time. Only this call is cancelled: the project
// can be used as before.
std::string ask(remote::Project& project, const std::string& server, const std::string& command,
                std::chrono::seconds limit) {
  remote::Cancel cancel;
  std::promise<void> answered;
  const auto timer = std::async(std::launch::async, [&, done = answered.get_future()]() mutable {
    if (done.wait_for(limit) == std::future_status::timeout) {
      cancel.cancel();
    }
  });
  std::string text;
  remote::RunRequest request;
  request.command = command;
  request.servers = {server};
  request.on_output = [&](std::size_t, remote::OutputStream, std::string_view data) { text += data; };
  try {
    project.run(request, cancel);
  } catch (const remote::Interrupted&) {
    text = "no answer";
  }
  answered.set_value();
  return text.substr(0, text.find('\n'));
}

int train(remote::Project& project, const std::string& command) {
  for (const remote::PrepareResult& server : project.prepare()) {
    if (server.error) {
      throw remote::Error(*server.error);
    }
  }
  remote::LaunchRequest launch;
  launch.command = command;
  launch.servers = project.server_names();
  launch.servers.resize(2);
  launch.nproc = 1;
  const remote::LaunchResult launched = project.launch(launch);
  if (!launched.errors.empty()) {
    return 1;
  }
  remote::FollowRequest follow;
  follow.first_rank_only = true;
  follow.judge = true;
  follow.on_output = [](const remote::JobOutput& output) {
    (output.stream == remote::OutputStream::out ? std::cout : std::cerr) << output.text;
  };
  // A callback may call the project, which follows the others meanwhile.
  follow.on_ended = [&](std::size_t, const remote::Job& job) {
    std::cerr << job.server << ": " << ask(project, job.server, "uptime", std::chrono::seconds(10)) << '\n';
    std::cerr << job.server << ": " << ask(project, job.server, "sleep 60", std::chrono::seconds(1)) << '\n';
  };
  const remote::FollowResult followed = project.follow(launched.jobs, follow);
  const remote::Verdict& verdict = followed.verdict.value();
  std::cout << verdict.succeeded << " of " << verdict.total << " ranks succeeded\n";
  if (verdict.first) {
    std::cout << "rank " << verdict.first->rank.value_or(0) << " on " << verdict.first->server
              << " failed first\n";
  }
  return verdict.succeeded == verdict.total ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, [](int) { stopped.cancel(); });
  try {
    remote::Hooks hooks;
    hooks.on_event = tell;
    hooks.cancel = stopped;
    hooks.rsync_helper = RSYNC_HELPER;  // where find_package(remote) found it
    remote::Project project(argc > 1 ? argv[1] : ".", hooks);
    return train(project, argc > 2 ? argv[2] : "python train.py");
  } catch (const remote::Error& error) {
    std::cerr << error.message() << '\n' << error.hint() << '\n';
    // Nothing is wrong with the project: the same may work later.
    const bool later = error.cause() == remote::Cause::unreachable || error.cause() == remote::Cause::timeout;
    return later ? 75 : 1;
  } catch (const remote::Interrupted&) {
    std::cerr << "stopped; what was started goes on\n";
    return 130;
  }
}
