// Prepares the servers of a project, trains on two of them, follows rank 0, and says what became of the launch.
// Usage: train PROJECT_FOLDER [COMMAND]

#include <iostream>

#include <remote/project.hpp>

namespace {

void tell(const remote::Event& event) {
  if (const auto* failed = std::get_if<remote::PartFailed>(&event)) {
    std::cerr << failed->error.message() << '\n';
  } else if (const auto* launched = std::get_if<remote::Launched>(&event)) {
    std::cerr << launched->result.jobs.size() << " ranks, master " << launched->result.plan.master_addr << '\n';
  }
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
  launch.nproc = "1";
  const remote::LaunchResult launched = project.launch(launch);
  if (!launched.errors.empty()) {
    return 1;
  }
  remote::FollowRequest follow;
  follow.first_rank_only = true;
  follow.judge = true;
  follow.on_output = [](std::size_t, remote::OutputStream stream, std::string_view text) {
    (stream == remote::OutputStream::out ? std::cout : std::cerr) << text;
  };
  const remote::FollowResult followed = project.follow(launched.jobs, follow);
  const remote::Verdict& verdict = followed.verdict.value();
  std::cout << verdict.succeeded << " of " << verdict.total << " ranks succeeded\n";
  if (verdict.first) {
    std::cout << "rank " << verdict.first->rank.value_or(0) << " on " << verdict.first->server << " failed first\n";
  }
  return verdict.succeeded == verdict.total ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    remote::Hooks hooks;
    hooks.on_event = tell;
    hooks.rsync_helper = RSYNC_HELPER;  // where find_package(remote) found it
    remote::Project project(argc > 1 ? argv[1] : ".", hooks);
    return train(project, argc > 2 ? argv[2] : "python train.py");
  } catch (const remote::Error& error) {
    std::cerr << error.message() << '\n' << error.hint() << '\n';
    return 1;
  }
}
