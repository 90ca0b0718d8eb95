#include "cli/context.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <fmt/format.h>
#include <poll.h>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/paths.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/show/events.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/trust.hpp"

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

// The path of the running executable. In a test this is the test, not `remote`.
fs::path self_path() {
#ifdef __linux__
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
#else
  std::uint32_t size = 0;
  ::_NSGetExecutablePath(nullptr, &size);  // returns the required size
  std::string buffer(size, '\0');
  if (::_NSGetExecutablePath(buffer.data(), &size) != 0) {
    throw Error("cannot find this program's own file", "the system does not report it")
        .mended_by(Remedy::report_bug);
  }
  std::error_code error;
  fs::path path = fs::canonical(buffer.c_str(), error);
#endif
  if (error) {
    throw Error("cannot find this program's own file", error.message(), "is /proc mounted?");
  }
  return path;
}

struct RemedyWords {
  Remedy remedy;
  std::string_view words;
  std::string_view without_detail = words;
};

// The options and commands for each remedy, in order.
constexpr RemedyWords remedy_words[] = {
    {Remedy::none, ""},
    {Remedy::make_project, "run `remote init` in the project's folder, or name it with --project DIR"},
    {Remedy::add_server, "for practice servers, run `remote sandbox up`"},
    {Remedy::make_key, "--generate makes it"},
    {Remedy::send_project, "send it with `remote rsync`"},
    {Remedy::choose_port, "leave --master-port out, or use one that is free: {detail}",
     "name one: --master-port PORT"},
    {Remedy::pass_local_rank, "or add --use-env"},
    {Remedy::start_job, "start one: remote job-run --cmd … --server …"},
    {Remedy::start_launch, "start one: remote torch-launch --cmd …"},
    {Remedy::name_job, "name it with --job {detail}"},
    {Remedy::list_jobs, "see: remote job-list"},
    {Remedy::forget_job,
     "or, if it is gone for good, remove the job here: remote job-clean --forget {detail}"},
    {Remedy::list_launches, "see: remote history"},
    {Remedy::authorize_key, "`remote authorize` puts a public key on the servers"},
    {Remedy::log_in, "`remote login{server}` logs in with OpenSSH, once for all commands"},
    {Remedy::trust_settings, "if you want that, allow it with `remote trust`"},
    {Remedy::trust_folder, "or allow it as it is with `remote trust --folder`"},
    {Remedy::use_mpi_ssh, "or let mpirun use the servers' own ssh: --mpi-agent ssh"},
    {Remedy::share_folder,
     "name a folder that all of them share: --init-dir DIR; or let the ranks find each other without a file: "
     "--init-method tcp, or env"},
    {Remedy::use_env_method, "--init-method env does that for one launch"},
    {Remedy::no_image, "--image none starts it once without the container"},
    {Remedy::skip_check, "--no-check starts it anyway"},
    {Remedy::prepare_servers, "`remote prepare` makes it"},
    {Remedy::find_program, "`remote prepare` finds one there, or names the reason why not"},
    {Remedy::start_sandbox, "`remote sandbox up` starts the practice servers"},
    {Remedy::name_servers, "--server NAME chooses the servers"},
    {Remedy::check_server, "`remote check{server}` shows what is wrong there"},
    {Remedy::read_manual, "`remote help {detail}` describes it"},
    {Remedy::tell_more, "run the same command with -vv to see the server's answer"},
    {Remedy::report_bug, "this is a bug in remote: please report it, with the output of -vv"},
    {Remedy::choose_code, "--code git takes it from git, --code now uses the current code"},
    {Remedy::wait_for_turn, "--wait starts it when they are free"},
    {Remedy::resume_sweep, "run the missing points: remote sweep --resume {detail}"},
    {Remedy::rerun_failed, "to run the failed points again, add --again failed"},
    {Remedy::rerun_unknown, "if you are sure that nothing runs there any more: --again unknown"},
    {Remedy::overwrite_files, "replace them there with: remote rsync --overwrite"},
    {Remedy::follow_job, "follow it with: remote job-tail --job {detail}",
     "name one: remote job-tail --job KEY"},
    {Remedy::name_script, "--no-check starts it anyway"},
};
static_assert(std::ranges::is_sorted(remedy_words, std::ranges::less_equal{}, &RemedyWords::remedy) &&
              std::size(remedy_words) == static_cast<std::size_t>(Remedy::name_script) + 1);

// `server`: the server of the error, or empty.
std::string words_of(Remedy remedy, const std::string& detail, const std::string& server) {
  const RemedyWords& row = remedy_words[static_cast<std::size_t>(remedy)];
  return fmt::format(fmt::runtime(detail.empty() ? row.without_detail : row.words),
                     fmt::arg("detail", detail),
                     fmt::arg("server", server.empty() ? "" : " --server " + shell_join({{server}})));
}

// Whether two errors differ only in their servers.
bool alike(const Error& one, const Error& other) {
  return one.what_failed() == other.what_failed() && one.reason() == other.reason() &&
         one.hint() == other.hint() && one.remedy() == other.remedy() &&
         one.remedy_detail() == other.remedy_detail();
}

Error anywhere(const Error& error) {
  return Error(error.what_failed(), error.reason(), error.hint(), error.kind())
      .mended_by(error.remedy(), error.remedy_detail());
}

}  // namespace

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  return names.size() <= most ? join(names, ", ")
                              : fmt::format("{}, {} and {} more", names[0], names[1], names.size() - 2);
}

std::string SameErrors::message() const {
  return servers.size() > 1 ? some_of(servers) + ": " + error.message() : error.message();
}

std::vector<SameErrors> told_once(const std::vector<Error>& errors) {
  std::vector<SameErrors> all;
  for (const Error& error : errors) {
    const auto same = std::ranges::find_if(all, [&](const SameErrors& told) {
      return !error.server().empty() && !told.servers.front().empty() && alike(told.error, error);
    });
    if (same == all.end()) {
      all.push_back({error, {error.server()}});
    } else if (std::ranges::find(same->servers, error.server()) == same->servers.end()) {
      same->error = anywhere(error);
      same->servers.push_back(error.server());
    }
  }
  return all;
}

Context::Context(Environment environment)
    : cancel(environment.cancel), terminal(environment.streams), environment_(std::move(environment)) {
  on_event = [this](const Event& event) { show(event); };
}

fs::path Context::folder() const {
  if (!options.project) {
    return Project::find(current_folder());
  }
  fs::path folder = absolute_path(expand_home(*options.project)).lexically_normal();
  std::error_code unreadable;
  if (!fs::exists(folder / ".remote/configs.yaml", unreadable) && !unreadable) {
    throw Error::usage("--project " + *options.project, "there is no .remote/configs.yaml in it",
                       "run `remote init` there first");
  }
  return folder;
}

Project& Context::project() {
  if (!project_) {
    Hooks hooks;
    hooks.cancel = cancel;
    hooks.strict = options.strict;
    hooks.rsync_helper = self_path();  // main.cpp also runs as the helper for rsync
    hooks.on_event = [this](const Event& event) {
      if (stream) {
        stream->take(event);
      }
      on_event(event);
    };
    hooks.ask_secret = [this](const std::string& prompt) -> std::optional<std::string> {
      if (!may_ask) {
        return std::nullopt;
      }
      struct Asking {
        std::atomic<int>& count;
        explicit Asking(std::atomic<int>& given) : count(given) { ++count; }
        ~Asking() { --count; }
        Asking(const Asking&) = delete;
        Asking& operator=(const Asking&) = delete;
      } const asking(questions);
      return terminal.ask_secret(prompt, cancel);
    };
    hooks.allow = [this](const std::vector<Demand>& demands) { return ask_trust(demands); };
    project_.emplace(environment_.open(folder(), std::move(hooks)));
  }
  return *project_;
}

bool Context::ask_trust(const std::vector<Demand>& demands) {
  show_demands(terminal, demands);
  return ask_yes_no("Allow this, now and later?") == Answer::yes;
}

Answer Context::ask_yes_no(const std::string& question, Answer usual, bool piped) {
  const std::string prompt = question + (usual == Answer::yes ? " [Y/n] " : " [y/N] ");
  for (;;) {
    const auto line = piped ? terminal.ask_stdin(prompt, cancel) : terminal.ask(prompt, cancel);
    cancel.check();
    if (!line) {
      return Answer::none;
    }
    const std::string answer = lower_case(trim(*line));
    if (answer.empty()) {
      return usual;
    }
    if (answer == "y" || answer == "yes") {
      return Answer::yes;
    }
    if (answer == "n" || answer == "no") {
      return Answer::no;
    }
    terminal.err("Please answer y or n.\n");
  }
}

void Context::print(const nlohmann::ordered_json& value) {
  if (stream) {
    stream->result(value);
  } else {
    terminal.out(dump_json(value));
  }
}

void Context::show_interrupted() {
  if (!when_interrupted) {
    return;
  }
  if (terminal.stderr_is_terminal()) {
    terminal.break_line();  // moves past the "^C" that the terminal has printed
  }
  terminal.notice(*when_interrupted);
}

void Context::show(const Error& error) {
  show(std::vector<Error>{error});
}

void Context::show(const std::vector<Error>& errors) {
  if (stream) {
    for (const Error& error : errors) {
      stream->error(error, hint_of(error));
    }
  }
  for (const SameErrors& same : told_once(errors)) {
    terminal.message(terminal.paint_err(ui::Style::red, "error:") + " " + same.message());
    if (const std::string hint = hint_of(same.error); !hint.empty()) {
      terminal.message(terminal.paint_err(ui::Style::cyan, " hint:") + " " + hint);
    }
  }
}

void Context::show(const Event& event) {
  show_event(*this, event);
}

void Context::pause(std::chrono::milliseconds time) const {
  pollfd slot{cancel.fd(), POLLIN, 0};
  static_cast<void>(::poll(&slot, 1, static_cast<int>(time.count())));
  cancel.check();
}

void Context::confirm(const std::vector<Job>& jobs, const std::string& question, const std::string& undone,
                      const Error& cannot_ask) {
  using Input = ui::Terminal::Input;
  if (!terminal.stdin_is_terminal() && terminal.stdin_input(std::chrono::seconds(0)) == Input::end) {
    throw cannot_ask;
  }
  Lines lines;
  for (const Batch& batch : by_launch(jobs)) {
    const std::string state = state_text(batch);
    for (const Job& job : batch) {
      lines.add(job, fmt::format("{}: {}", state, job.command));
    }
  }
  for (const std::string& line : first_lines(lines.text(), 20)) {
    terminal.err("  " + line + "\n");
  }
  const Answer answer = ask_yes_no(question, Answer::no, true);
  if (answer == Answer::none && !terminal.stdin_is_terminal()) {
    throw cannot_ask;
  }
  if (answer != Answer::yes) {
    throw Error(undone, "not confirmed");
  }
}

fs::path current_folder() {
  return remote::current_folder();
}

fs::path absolute_path(const fs::path& path) {
  return remote::absolute_path(path);
}

std::string hint_of(const Error& error) {
  const std::string words = words_of(error.remedy(), error.remedy_detail(), error.server());
  return error.hint() + (error.hint().empty() || words.empty() ? "" : "; ") + words;
}

std::vector<std::string> first_lines(const std::vector<std::string>& texts, std::size_t most) {
  std::vector<std::string> lines;
  for (const std::string& text : texts) {
    if (lines.size() == most) {
      lines.push_back(fmt::format("… and {} more", texts.size() - most));
      break;
    }
    lines.push_back(visible_line(text));
  }
  return lines;
}

}  // namespace remote::cli
