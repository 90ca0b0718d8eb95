#include "cli/cli.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <remote/error.hpp>
#include <remote/log.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include "base/error_of.hpp"
#include "base/files.hpp"
#include "cli/commands.hpp"
#include "cli/commands/status.hpp"
#include "cli/help.hpp"
#include "cli/manual.hpp"
#include "cli/named_launch.hpp"
#include "cli/parser.hpp"
#include "cli/usage_error.hpp"
#include "cli/words.hpp"
#include "config/config.hpp"
#include "ui/silence.hpp"

namespace remote::cli {

namespace {

// Must outlive main's locals, because the signal handler uses it; set once, before the handler is installed.
Cancel* signal_target() {
  static Cancel target;
  return &target;
}

extern "C" void on_signal(int number) {
  const int saved_errno = errno;
  Cancel* target = signal_target();
  if (target->cancelled() && number == SIGINT) {
    ui::restore_terminal();
    ::_exit(130);
  }
  target->cancel();
  errno = saved_errno;
}

// A token that is cancelled by SIGINT, SIGTERM and SIGHUP (closed terminal). A second SIGINT exits
// immediately.
Cancel cancel_on_signals() {
  Cancel token = *signal_target();
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {  // not under nohup
    ::sigaction(SIGHUP, &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigemptyset(&ignore.sa_mask);
  // If the reader of stdout is gone, write(2) then returns an error.
  ::sigaction(SIGPIPE, &ignore, nullptr);
  return token;
}

class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit TerminalSink(ui::Terminal& terminal) : terminal_(terminal) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    terminal_.err({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  ui::Terminal& terminal_;
};

// While it exists, writes the library's log to stderr, with the time of each line. `verbosity`: how often -v
// was given; 0: no log.
class Logging {
 public:
  Logging(ui::Terminal& terminal, int verbosity) {
    if (verbosity == 0) {
      return;
    }
    terminal.set_logging();
    const auto logger = std::make_shared<spdlog::logger>("remote", std::make_shared<TerminalSink>(terminal));
    logger->set_pattern("%H:%M:%S.%e %v");
    logger->set_level(spdlog::level::debug);
    set_log(verbosity == 1 ? LogLevel::info : LogLevel::debug,
            [logger](LogLevel level, std::string_view server, std::string_view text) {
              logger->log(level == LogLevel::info ? spdlog::level::info : spdlog::level::debug, "{}{}{}",
                          server, server.empty() ? "" : ": ", text);
            });
  }
  ~Logging() { set_log(LogLevel::off, nullptr); }
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
};

void apply_global_options(Context& context) {
  context.terminal.set_quiet(context.options.quiet);
  context.options.json = context.options.json || context.options.jsonl;
  if (context.options.color == "always") {
    context.terminal.set_color(ui::Color::always);
  } else if (context.options.color == "never") {
    context.terminal.set_color(ui::Color::never);
  }
}

// The command for programs, such as "sandbox up", without the name of this program.
std::string command_of(const CLI::App& app) {
  const std::string name = name_of_command(app);
  const std::size_t blank = name.find(' ');
  return blank == std::string::npos ? "status" : name.substr(blank + 1);
}

// For --jsonl; also works if the rest of the command line is invalid.
void begin_stream(const CLI::App& app, Context& context) {
  if (context.options.jsonl && !context.stream) {
    context.stream.emplace(context.terminal);
    context.stream->begin(command_of(app));
  }
}

int parse_and_run(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  try {
    context.typed_words = words;
    check_quotes(app, words);
    const CommandLine line =
        read_command_line(app, context.with_command, words,
                          [&](const std::string& word) { return is_launch(context, words, word); });
    context.command_words = line.command;
    check_typed_signs(words, line.command);
    app.parse(
        std::vector<std::string>(line.words.rbegin(), line.words.rend()));  // CLI11 reads them from the back
    if (!app.get_subcommands().empty()) {
      return context.exit_code;
    }
    if (context.options.project || config::nearest_project(current_folder())) {
      return show_status(context);
    }
    return show_no_project(context);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;  // --help and --version
      app.exit(error, text);
      context.terminal.out(text.str());
      return 0;
    }
    context.options.jsonl = context.options.jsonl || std::ranges::find(words, "--jsonl") != words.end();
    begin_stream(app, context);
    context.show(usage_error(context, app, error, words));
    return 2;
  }
}

// Prints the last event, also after Ctrl-C. A reader that does not read loses it.
void end_stream(Context& context, int code) {
  context.terminal.set_cancel(Cancel());
  try {
    context.stream->end(code);
  } catch (const Error&) {
    // stdout is closed
  }
}

int run_guarded(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  try {
    return parse_and_run(app, context, words);
  } catch (const Interrupted&) {
    context.show_interrupted();
    return 130;
  } catch (const Error& error) {
    context.show(with_script_line(context, error));
    return error.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::system_error& error) {  // for example if a thread could not be created
    context.show(error_of(error));
    return 1;
  } catch (const std::exception& error) {
    context.show(Error("internal error", error.what(), "this is a bug in remote: please report it"));
    return 1;
  }
}

}  // namespace

int run(const std::vector<std::string>& words, Environment environment) {
  Context context(std::move(environment));
  CLI::App app("Run distributed PyTorch on plain SSH servers.", "remote");
  app.set_version_flag("--version", "remote " REMOTE_VERSION);
  // Subcommands inherit it.
  const std::size_t width = help_width(context);
  app.formatter_fn([width](const CLI::App* command, const std::string& name, CLI::AppFormatMode) {
    return help_text(*command, name, width);
  });
  add_commands(app, context);
  add_manual(app);
  std::optional<Logging> logging;
  app.parse_complete_callback([&] {
    apply_global_options(context);
    begin_stream(app, context);
    logging.emplace(context.terminal, context.options.verbose);
  });
  const int code = run_guarded(app, context, words);
  if (context.stream) {
    end_stream(context, code);
  }
  return code;
}

int run(int argc, char** argv) {
  try {
    Environment environment;
    environment.cancel = cancel_on_signals();
    return run({argv + 1, argv + argc}, std::move(environment));
  } catch (const Error& error) {
    // Too few files may be open (ulimit -n) to create the Terminal.
    std::cerr << "error: " << error.message() << "\n hint: " << error.hint() << '\n';
    return 1;
  }
}

}  // namespace remote::cli
