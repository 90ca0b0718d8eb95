#include "base/login_shell.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote {
namespace {

std::string join_last_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(last_lines(trim(text), 3), '\n')) {
    if (!trim(line).empty()) {
      lines.emplace_back(trim(line));
    }
  }
  return join(lines, "; ");
}

// Messages of servers that do not accept commands, with hints. The first match counts.
struct Refusal {
  std::string_view text;
  std::string_view hint;
};

constexpr std::string_view change_password = "log in once with ssh and change the password";
constexpr std::string_view is_gateway =
    "a gateway that accepts no commands, as some providers have: use the machine's own address and port, "
    "which "
    "the provider's page shows too (SSH over TCP)";
constexpr std::string_view other_account =
    "log in as another user, or have its administrator give it a shell: chsh -s /bin/sh USER";

constexpr std::array refusals{
    Refusal{"account is currently not available", other_account},  // from nologin(8)
    Refusal{"sftp connections only", other_account},
    Refusal{"Please login as the user",
            "log in as the user that it names: `username` of the server in configs.yaml"},
    Refusal{"assword change required", change_password},
    Refusal{"assword has expired", change_password},
    Refusal{"required to change your password", change_password},
    Refusal{"PTY", is_gateway},
    Refusal{" pty", is_gateway},
    Refusal{"without a terminal", is_gateway},
    Refusal{"requires a terminal", is_gateway},
    Refusal{"needs a terminal", is_gateway},
    Refusal{"Interactive login required", is_gateway},
    Refusal{"nteractive session", is_gateway},
};

// Returns the error for a server that does not accept commands; nullopt if these texts do not indicate that.
std::optional<Error> find_refusal(const std::string& said, const std::string& detail) {
  for (const Refusal& refusal : refusals) {
    for (const std::string* text : {&said, &detail}) {
      if (text->find(refusal.text) != std::string::npos) {
        return Error("nothing was run on the server", "it accepts no commands, and prints: " + *text,
                     refusal.hint);
      }
    }
  }
  return std::nullopt;
}

// Whether the text contains binary data, that is, parts of our request that another program has read and
// printed.
bool has_binary(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    return static_cast<unsigned char>(c) < ' ' &&
           std::string_view("\t\n\r\f\a\b\x1b").find(c) == std::string_view::npos;
  });
}

}  // namespace

Error login_shell_ended(const std::string& ended, std::string_view printed) {
  const std::string said = join_last_lines(printed);
  const std::string detail = join_last_lines(ended);
  if (auto refusal = find_refusal(said, detail)) {
    return *std::move(refusal);
  }
  const std::string quoted = said.empty() ? "" : "; it printed: " + said;
  const std::string or_command =
      said.empty()
          ? ""
          : ", or a command of the server's configuration answers in place of the shell (ForceCommand, "
            "or command= in authorized_keys)";
  if (detail.empty()) {
    return {"no answer from the server",
            "its login shell ended without an error, but the script's output did not arrive" + quoted,
            "one of the shell's start files there sends the output elsewhere (exec >FILE), or ends the shell "
            "when there is no terminal" +
                or_command + ": fix that until `ssh HOST echo hello` prints hello"};
  }
  if (said.empty() &&
      detail.find(": ") == std::string::npos) {  // it may have been run, with its output going elsewhere
    return {
        "no answer from the server", "its login shell ended and printed nothing: " + detail,
        "one of the shell's start files there (~/.bashrc, ~/.zshenv, config.fish, ~/.tcshrc) ends it when "
        "there is no terminal, or sends the output elsewhere, or the account has no shell: fix that until "
        "`ssh HOST echo hello` prints hello"};
  }
  return {"nothing was run on the server",
          "its login shell ended before the script began: " + detail + quoted,
          "one of the shell's start files there (~/.bashrc, ~/.zshenv, config.fish, ~/.tcshrc) ends it when "
          "there is no terminal" +
              or_command + ": fix that until `ssh HOST true` exits with 0"};
}

Error login_shell_waits(const std::string& printed, std::chrono::milliseconds time) {
  const std::string said = join_last_lines(printed);
  if (auto refusal = find_refusal(said, "")) {
    return *std::move(refusal);
  }
  if (has_binary(printed)) {
    return {"no answer",
            "one of the login shell's start files there starts another program, which reads the input",
            "put exec zsh, ssh-agent bash and the like behind [ -t 0 ], so that only terminals run them"};
  }
  return Error("no answer",
               fmt::format("its login shell printed nothing{} for {} s{}", said.empty() ? "" : " more",
                           time.count() / 1000, said.empty() ? "" : "; it printed: " + said),
               "log in with ssh: a start file of the shell may be waiting, start another shell (exec zsh) or "
               "redirect "
               "the output (exec >FILE), or the home directory may be on storage that does not respond; "
               "connect_timeout in configs.yaml allows more time")
      .because(Cause::timeout);
}

Error login_shell_took_input(const std::string& printed, std::chrono::milliseconds time) {
  const std::string said = join_last_lines(printed);
  return Error("no answer",
               fmt::format("the login shell there started the agent, which got no request in {} s{}",
                           time.count() / 1000, said.empty() ? "" : "; the shell printed: " + said),
               "a start file of the shell may ask something (read -p, newgrp, kinit) and so read the "
               "request: put "
               "it behind [ -t 0 ], so that only terminals run it. Otherwise the server is overloaded: try "
               "again")
      .because(Cause::timeout);
}

std::string_view Greeting::strip(std::string_view data,
                                 const std::function<bool(std::string_view)>& is_last) {
  constexpr std::size_t most = std::size_t{1} << 20U;
  while (!over_ && !data.empty()) {
    const std::size_t end = data.find('\n');
    text_ += data.substr(0, end);
    data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
    if (text_.size() > most) {
      throw Error("nothing was run on the server", "its login shell prints without end",
                  "check what the shell's start files there print");
    }
    if (end == std::string_view::npos) {
      break;
    }
    over_ = is_last(std::string_view(text_).substr(line_at_));
    if (over_) {
      text_.resize(line_at_);
    } else {
      text_ += '\n';
      line_at_ = text_.size();
    }
  }
  return over_ ? data : std::string_view();
}

}  // namespace remote
