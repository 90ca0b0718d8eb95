// Jobs with a web interface, TensorBoard and Jupyter, whose port is forwarded to this machine.

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>
#include <poll.h>

#include "base/hashing.hpp"
#include "base/shell_quote.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/start.hpp"
#include "jobs/verdict.hpp"
#include "project/forward.hpp"
#include "project/new_job.hpp"
#include "servers/agent.hpp"
#include "servers/container.hpp"
#include "servers/facts.hpp"

namespace remote::project {
namespace {

constexpr std::chrono::milliseconds look_again{300};

struct WebProgram {
  std::string name;
  std::string shown;    // the displayed command of the job; equal for equal programs
  std::string command;  // gets the port and the token from its environment
  int local;            // default local port
};

WebProgram program_of(const WebRequest& request) {
  if (request.tool == WebTool::tensorboard) {
    const std::string folder = shell_quote(request.folder);
    return {"tensorboard", "tensorboard --logdir " + folder,
            fmt::format(R"(exec tensorboard --logdir {} --host 127.0.0.1 --port "$REMOTE_WEB_PORT")", folder),
            6006};
  }
  return {"jupyter", "jupyter",
          // Jupyter refuses to run as root without this option.
          R"(tool=jupyter-lab; command -v $tool >/dev/null 2>&1 || tool=jupyter-notebook
[ $(id -u) != 0 ] || set -- --allow-root
exec $tool "$@" --no-browser --ip=127.0.0.1 --port="$REMOTE_WEB_PORT" --port-retries=0)",
          8888};
}

// A running job on the server with the same displayed command.
std::optional<Job> running_job(Core& core, const config::Server& server, const WebProgram& program) {
  std::vector<Job> jobs = stored_jobs(core, {.unfinished_only = true});
  std::erase_if(jobs, [&](const Job& job) {
    return job.server != server.name || !job.has_tag(program.name) || job.command != program.shown;
  });
  jobs = refresh(core, std::move(jobs));
  const auto running = std::ranges::find(jobs, JobState::running, &Job::state);
  return running == jobs.end() ? std::nullopt : std::optional(*running);
}

// A free port of the server and a random token: the content of the job's file `web`.
std::string choose_port_and_token(Core& core, const config::Server& server, const WebProgram& program) {
  servers::FactsRequest request;
  request.wanted.port = 0;
  const auto connection = core.connector().connect(server, core.cancel());
  const servers::FactsAnswer answer = servers::ask_facts(*connection, request, core.cancel());
  if (!answer.port->suggested) {
    throw Error("cannot start " + program.name, "the server has no free port from 20000 to 32767",
                "run `ss -tln` there: some program has opened them");
  }
  return fmt::format("{} {}", *answer.port->suggested, random_hex(48));
}

Job start_web(Core& core, const config::Server& server, const WebProgram& program) {
  jobs::NewJob job = new_job(core.config, server, {program.command, job_env(server, {})});
  job.web = choose_port_and_token(core, server, program);
  job.job.command = program.shown;
  set_tags(job.job, {program.name});
  jobs::StartResult result = jobs::start(core.site(), {std::move(job)});
  if (result.unsaved) {
    core.tell(StoreProblem{result.unsaved->message()});
  }
  if (!result.errors.empty()) {
    throw Error(result.errors.front());
  }
  return std::move(result.jobs.front());
}

// Waits until the program listens. Throws Error if the job ends first.
wire::WebPortReply await_port(Core& core, const config::Server& server, Job job, const WebProgram& program) {
  servers::AgentQuestion question;
  question.what = "port of " + program.name;
  question.request = wire::WebPortRequest{jobs::to_place(job.remote_folder), job.id.text()};
  question.timeout = std::chrono::seconds(30);
  const auto connection = core.connector().connect(server, core.cancel());
  for (;;) {
    auto answer =
        servers::take_reply<wire::WebPortReply>(servers::ask_agent(*connection, question, core.cancel()));
    if (answer.port > 0) {
      return answer;
    }
    job = refresh(core, {job}).front();
    if (is_final(job.state)) {
      const std::vector<std::string> said =
          jobs::last_lines({*connection, core.cancel()}, {job}, 1, {"job.err"});
      throw Error(fmt::format("{} has ended before it could be opened", program.name),
                  said.empty() ? "it printed nothing" : said.back(),
                  fmt::format("is {} in the Python environment of the server? It is installed like any other "
                              "package of the project",
                              program.name))
          .mended_by(Remedy::follow_job, std::to_string(job.key));
    }
    pollfd slot{core.cancel().fd(), POLLIN, 0};
    static_cast<void>(::poll(&slot, 1, static_cast<int>(look_again.count())));
    core.cancel().check();
  }
}

config::Server web_server(const Core& core, const WebRequest& request, const WebProgram& program) {
  const std::string cannot = "cannot start " + program.name;
  const config::Server server =
      request.server.empty() ? core.servers({}).front() : core.one_server(request.server, cannot, "a job");
  if (server.slurm || servers::container_of(server, std::nullopt)) {
    throw Error::usage(cannot,
                       fmt::format("the jobs of server '{}' run {}", server.name,
                                   server.slurm ? "on nodes of Slurm" : "in containers"),
                       "start it as a job of your own, and forward its port");
  }
  return server;
}

void show_web(Core& core, const WebRequest& request) {
  const WebProgram program = program_of(request);
  const config::Server server = web_server(core, request, program);
  const SettledAtTheEnd settled(core);
  const auto on_job = core.on_caller(request.on_job);
  const auto on_address = core.on_caller(request.on_address);
  const auto on_refused = core.on_caller(request.on_refused);
  const auto on_ended = core.on_caller(request.on_ended);
  const auto on_killed = core.on_caller(request.on_killed);
  const std::optional<Job> joined = running_job(core, server, program);
  const Job job = joined ? *joined : start_web(core, server, program);
  try {
    if (on_job) {
      on_job(job, joined.has_value());
    }
    const wire::WebPortReply answer = await_port(core, server, job, program);
    ForwardNews news;
    news.listening = [&](std::size_t, const Listening& listening) {
      if (on_address) {
        const std::string path = request.tool == WebTool::jupyter ? "/?token=" + answer.token : "/";
        on_address(job, listening, fmt::format("http://127.0.0.1:{}{}", listening.local, path));
      }
    };
    news.refused = [&](std::size_t, const Error& error) {
      if (on_refused) {
        on_refused(error);
      }
    };
    news.ended = [&](const Job& ended) {
      if (on_ended) {
        on_ended(ended);
      }
    };
    const int local = request.local > 0 ? request.local : program.local;
    forward(core, {{.server = server.name, .local = local, .port = answer.port}}, job, news);
  } catch (const Interrupted&) {
    if (!joined && !request.keep) {
      const KillResult killed =
          kill(core, {job}, {}, Cancel(), std::chrono::ceil<std::chrono::seconds>(ask_limit));
      if (on_killed) {
        on_killed(killed);
      }
    }
    throw;
  }
}

}  // namespace

}  // namespace remote::project

namespace remote {

void Project::web(const WebRequest& request, const std::optional<Cancel>& cancel) {
  project::call_servers(*state_, cancel, [&](project::Core& core) {
    project::adopt_labml_jobs(core);  // so that their keys are not reused
    project::show_web(core, request);
  });
}

}  // namespace remote
