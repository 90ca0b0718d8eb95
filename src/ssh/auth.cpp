#include "ssh/auth.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/has_any.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "ssh/agent.hpp"
#include "ssh/certificate.hpp"
#include "ssh/local_socket.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
namespace {

constexpr unsigned any_password = SSH_AUTH_METHOD_PASSWORD | SSH_AUTH_METHOD_INTERACTIVE;

// If a server takes longer than this, it is waiting for something, such as a page that the user has to open.
constexpr std::chrono::seconds usual_answer{2};
// How long to wait for the user to open the page.
constexpr std::chrono::minutes page_time{2};

constexpr const char* agent_hint =
    "start one with `eval $(ssh-agent)` and add the key with `ssh-add`, or unset SSH_AUTH_SOCK";

// One login. Each try_… function returns true if the login succeeded.
class Login {
 public:
  Login(ssh_session session, const Target& target, Secrets& secrets, Patience& patience)
      : session_(session),
        target_(target),
        secrets_(secrets),
        patience_(patience),
        what_failed_("cannot log in as " + target.user.value) {}

  AcceptedKeys run() {
    // A server that requires several methods (AuthenticationMethods) accepts one and then names the next. So
    // all methods are tried again as long as one was accepted.
    constexpr int most_methods = 5;
    for (int round = 0; round < most_methods; ++round) {
      partial_ = false;
      if (try_all()) {
        return std::move(keys_);
      }
      if (!partial_) {
        break;
      }
    }
    fail();
  }

 private:
  bool try_all() {
    if (target_.only_first_identity) {
      return try_file(target_.identities.front().value);
    }
    return (target_.identities_given && try_files()) ||
           (has_configured_password() && try_configured_password()) || try_agent() ||
           (!target_.identities_given && try_files()) || try_gssapi() || try_none() ||
           (!has_configured_password() && try_typed_password());
  }

  const char* user() const { return target_.user.value.c_str(); }

  // Calls a non-blocking function of libssh until it returns a result.
  template <typename Call>
  int finish(const Call& call) {
    for (;;) {
      const int rc = call();
      if (rc != SSH_AUTH_AGAIN && rc != SSH_AGAIN) {
        return rc;
      }
      const Patience brief = patience_.at_most(usual_answer);
      if (wait_for_session(session_, brief)) {
        continue;
      }
      if (!alive() || !brief.over()) {
        broken();
      }
      show_page();
      if (patience_.over()) {
        stopped();
      }
    }
  }

  // Some servers wait until the user has opened a page in a browser, and print its address first.
  void show_page() {
    const std::string said = banner_end();
    const std::string words = lower_case(said);
    const bool asks = has_any(words, {"visit", "open", "authenticat", "browser", "confirm", "approv"});
    if (!shown_page_ && asks && said.find("://") != std::string::npos) {
      shown_page_ = true;
      if (secrets_.tell_once(
              Error("the login waits", "the server says: " + said, "do that; the login then continues")
                  .on(target_.name))) {
        patience_.extend(page_time);
      }
    }
  }

  [[noreturn]] void stopped() const {
    const std::string said = banner();
    const std::string who = target_.describe();
    throw Unreachable(
        (said.empty() ? Error("cannot log in", fmt::format("{} stopped answering", who),
                              "check the server's load; connect_timeout in configs.yaml allows more time")
                      : Error("cannot log in",
                              fmt::format("{} has not answered within {}{}", who, patience_.text(), said),
                              "if it asks for something, do that, and run the command again; connect_timeout "
                              "in configs.yaml "
                              "allows more time"))
            .because(Cause::timeout));
  }

  // Returns true if the login succeeded; otherwise records the attempt.
  bool accepted(int rc, const std::string& what) {
    const std::string outcome = rc == SSH_AUTH_SUCCESS   ? "accepted"
                                : rc == SSH_AUTH_PARTIAL ? "accepted, but the server wants more"
                                : rc == SSH_AUTH_ERROR   ? last_error(session_, "it failed")
                                                         : "refused";
    log_info(target_.name, "login with {}: {}", what, outcome);
    trying_.clear();
    if (rc == SSH_AUTH_SUCCESS) {
      return true;
    }
    if (rc == SSH_AUTH_ERROR && !alive()) {
      tried_.push_back(what);
      broken();
    }
    tried_.push_back(fmt::format("{} ({})", what, outcome));
    partial_ = partial_ || rc == SSH_AUTH_PARTIAL;
    any_answer_ = any_answer_ || rc != SSH_AUTH_ERROR;
    return false;
  }

  bool alive() const { return (ssh_get_status(session_) & (SSH_CLOSED | SSH_CLOSED_ERROR)) == 0; }

  // The end of the server's banner, which may contain the reason why logins are closed.
  std::string banner_end() const {
    const std::unique_ptr<char, void (*)(char*)> text(ssh_get_issue_banner(session_), ssh_string_free_char);
    std::string said = text == nullptr ? "" : last_lines(trim(text.get()), 3);
    std::erase(said, '\r');
    return visible_line(join(split(said, '\n'), " "), 300);
  }
  // ", and says: …", or "".
  std::string banner() const {
    const std::string said = banner_end();
    return said.empty() ? "" : ", and says: " + said;
  }

  [[noreturn]] void broken() const {
    const std::string reason = last_error(session_, "it closed the connection") + banner();
    // If the connection closes, sshd's reason can be lost. By default sshd allows six attempts
    // (MaxAuthTries), and libssh offers all of the agent's keys in one go.
    const std::size_t shown = filter_ ? filter_->shown() : 0;
    if (tried_.size() + shown >= 6 || reason.find("Too many authentication") != std::string::npos) {
      std::vector<std::string> attempts = tried_;
      if (!trying_.empty()) {
        attempts.push_back(trying_);
      }
      if (attempts.empty()) {
        attempts.emplace_back("the first question, which methods it allows");
      }
      throw Error(
          what_failed_,
          fmt::format("the server gave up after these attempts: {}{}", join(attempts, ", "), banner()),
          "name the right key with `private_key` in configs.yaml, or set IdentitiesOnly in ~/.ssh/config");
    }
    throw Unreachable(what_failed_, fmt::format("the connection to {} broke: {}", target_.describe(), reason),
                      "run the command again; if it fails again, check the server's sshd log");
  }

  // Whether the server allows a method. Before its first answer, every method counts as allowed.
  bool allows(unsigned method) const {
    return !any_answer_ || (static_cast<unsigned>(ssh_userauth_list(session_, nullptr)) & method) != 0;
  }

  // `file` is the file that the key was read from.
  bool try_key(ssh_key key, const fs::path& file, const std::string& what) {
    trying_ = what;
    const int rc = finish([&] { return ssh_userauth_publickey(session_, user(), key); });
    if (rc == SSH_AUTH_DENIED) {
      refused_.push_back(what);
    }
    if (taken(rc)) {
      keys_.keys.insert(base64_decode(key_base64(key)).value_or(""));
      keys_.files.push_back(file);
    }
    return accepted(rc, what);
  }

  static bool taken(int rc) { return rc == SSH_AUTH_SUCCESS || rc == SSH_AUTH_PARTIAL; }

  // Tries the key's certificates: <key>-cert.pub, and those that CertificateFile names.
  bool try_certificates(ssh_key key, const fs::path& file) {
    std::vector<fs::path> candidates{file.string() + "-cert.pub"};
    for (const auto& named : target_.certificates) {
      candidates.push_back(named.value);
    }
    for (const fs::path& candidate : candidates) {
      const KeyPtr certificate =
          is_there(candidate) ? make_key(ssh_pki_import_cert_file, candidate.c_str()) : nullptr;
      if (certificate) {
        if (const std::string why = certificate_problem(candidate); !why.empty()) {
          add_problem({"certificate " + candidate.string(), why, "get a new certificate"});
          continue;
        }
      }
      const KeyPtr with(ssh_key_dup(key));
      if (certificate && with && ssh_pki_copy_cert_to_privkey(certificate.get(), with.get()) == SSH_OK &&
          try_key(with.get(), file, "certificate " + candidate.string())) {
        return true;
      }
    }
    return false;
  }

  bool try_file(const fs::path& file) {
    Secrets::KeyResult result = secrets_.key(file, false);
    // Try the agent first, because it may hold the key even if the file is only the public half. Ask for a
    // passphrase only if it does not.
    if ((result.locked || result.missing || result.is_public) && try_agent_for(file)) {
      return true;
    }
    if (result.locked || (result.missing && target_.only_first_identity)) {
      learn_methods();
      if (needs_no_method_) {
        return true;
      }
      if (!allows(SSH_AUTH_METHOD_PUBLICKEY)) {
        return false;
      }
      result = secrets_.key(file, true);
      patience_.restart();
    }
    if (!result.key) {
      if (!result.missing || target_.identities_given) {
        const std::string hint =
            result.missing ? fmt::format("correct the key's path ({})", origin_of(file)) : result.hint;
        add_problem({"key " + file.string(), result.problem, hint});
        wrong_path_ = wrong_path_ || (result.missing && origin_of(file).starts_with("configs.yaml") &&
                                      !is_there(file.string() + ".pub"));
      }
      return false;
    }
    return (!target_.only_first_identity && try_certificates(result.key.get(), file)) ||
           try_key(result.key.get(), file, "key " + file.string());
  }

  // Adds a possible reason for a failed login, unless it was recorded before. All methods are tried again
  // after a partial success.
  void add_problem(const Error& problem) {
    const auto same = [&](const Error& other) { return other.message() == problem.message(); };
    if (std::ranges::any_of(problems_, same)) {
      return;
    }
    problems_.push_back(problem);
    key_hint_ = key_hint_.empty() ? problem.hint() : key_hint_;
  }

  bool try_files() {
    for (const auto& identity : target_.identities) {
      if (!allows(SSH_AUTH_METHOD_PUBLICKEY)) {
        return false;
      }
      if (try_file(identity.value)) {
        return true;
      }
    }
    return false;
  }

  // The public half of a key file in the wire format. It can be read even if the private half is encrypted.
  static std::optional<std::string> public_half(const fs::path& file) {
    for (const std::string& name : {file.string() + ".pub", file.string()}) {
      const KeyPtr key = is_there(name) ? make_key(ssh_pki_import_pubkey_file, name.c_str()) : nullptr;
      if (key) {
        return base64_decode(key_base64(key.get()));
      }
    }
    return std::nullopt;
  }

  // Tries one particular key, if the agent holds it.
  bool try_agent_for(const fs::path& file) {
    const auto wanted = public_half(file);
    return wanted && use_agent({*wanted}, fmt::format("key {} in the agent", file.string()));
  }

  // Tries all of the agent's keys or, with IdentitiesOnly, only those that the configuration names.
  bool try_agent() {
    if (!target_.identities_only.value) {
      return use_agent({}, "the agent's keys");
    }
    std::set<std::string> wanted;
    for (const auto& identity : target_.identities) {
      if (const auto key = public_half(identity.value)) {
        wanted.insert(*key);
      }
    }
    return !wanted.empty() && use_agent(std::move(wanted), "the named keys in the agent");
  }

  bool use_agent(std::set<std::string> only, const std::string& what) {
    const std::string socket = target_.agent_socket();
    if (socket.empty() || !allows(SSH_AUTH_METHOD_PUBLICKEY)) {
      return false;
    }
    if (!connect_local(socket)) {
      agent_problem_ =
          fmt::format("no agent answers at {} ({})", socket,
                      target_.identity_agent.value.empty() ? "SSH_AUTH_SOCK" : target_.identity_agent.origin);
      return false;
    }
    if (!filter_) {
      try {
        filter_.emplace(socket);
      } catch (const Error&) {
        if (!only.empty()) {
          throw;
        }
      }
    }
    if (filter_) {
      filter_->show(std::move(only));
    }
    trying_ = what;
    // libssh keeps the first socket that it has opened, so once a filter was used, it has to be used from
    // then on.
    ssh_options_set(session_, SSH_OPTIONS_IDENTITY_AGENT, filter_ ? filter_->path().c_str() : socket.c_str());
    const int rc = finish([&] { return ssh_userauth_agent(session_, user()); });
    if (rc == SSH_AUTH_ERROR && alive()) {
      agent_problem_ = fmt::format("the agent at {} cannot be used", socket);
      return false;
    }
    if (taken(rc) && filter_) {
      keys_.keys.insert(filter_->last_signing_key());
    }
    // libssh does not report whether the agent had any keys, so it is possible that nothing was refused.
    any_answer_ = any_answer_ || ssh_userauth_list(session_, nullptr) > 0;
    if (rc == SSH_AUTH_DENIED && !any_answer_) {
      trying_.clear();
      return false;
    }
    return accepted(rc, what);
  }

  // Uses the user's Kerberos ticket.
  bool try_gssapi() {
    if (!target_.gssapi.value) {
      return false;
    }
    learn_methods();  // a ticket is only shown to servers that ask for one
    if (needs_no_method_) {
      return true;
    }
    if (!allows(SSH_AUTH_METHOD_GSSAPI_MIC)) {
      return false;
    }
    return accepted(finish([&] { return ssh_userauth_gssapi(session_); }), "Kerberos");
  }

  bool has_configured_password() const {
    return !target_.password.value.empty() || !target_.password_env.value.empty() ||
           !target_.password_command.value.empty();
  }

  bool try_configured_password() {
    std::string password = target_.password.value;
    std::string what = fmt::format("password ({})", target_.password.origin);
    if (!target_.password_env.value.empty()) {
      const char* value = std::getenv(target_.password_env.value.c_str());
      if (value == nullptr) {
        throw Error::usage("no password",
                           fmt::format("the variable {} is not set ({})", target_.password_env.value,
                                       target_.password_env.origin),
                           fmt::format("export {}=… and run the command again", target_.password_env.value));
      }
      password = value;
      what = fmt::format("password from ${}", target_.password_env.value);
    } else if (!target_.password_command.value.empty()) {
      log_info(target_.name, "running password_command");
      password = secrets_.from_command(target_.password_command.value, patience_.cancel());
      patience_.restart();
      what = "password from password_command";
    }
    return try_password(password, what);
  }

  bool try_typed_password() {
    // If configs.yaml names a key file that does not exist, this is a mistake to correct, and asking for a
    // password would hide it.
    if (!secrets_.can_ask() || wrong_path_) {
      return false;
    }
    learn_methods();
    if (needs_no_method_) {
      return true;
    }
    if (!allows(any_password)) {
      return false;
    }
    if (!allows(SSH_AUTH_METHOD_PASSWORD)) {
      return try_typed_answers();
    }
    const auto shared = shared_password();
    if (shared && try_password(*shared, "the typed password")) {
      return true;
    }
    // It may be the password of another server, so ask for this server's.
    const auto own = shared && allows(any_password) ? ask_own() : std::nullopt;
    return own && try_password(*own, "the second typed password");
  }

  // Before asking, prints why no key works.
  std::optional<std::string> shared_password() {
    for (const Error& problem : problems_) {
      secrets_.tell_once(problem);
    }
    if (!agent_problem_.empty()) {
      secrets_.tell_once(Error("cannot use the agent's keys", agent_problem_, agent_hint));
    }
    if (keys_.keys.empty() && !refused_.empty()) {
      secrets_.tell_once(
          Error(fmt::format("no key logs in as {}", target_.user.value),
                fmt::format("the server does not accept {} from this user", join(refused_, ", ")))
              .mended_by(Remedy::authorize_key)
              .on(target_.name));
    }
    auto text = secrets_.shared_password(target_.user.value, target_.password_prompt());
    patience_.restart();
    return text;
  }

  std::string origin_of(const fs::path& file) const {
    const auto found = std::ranges::find(target_.identities, file, &config::Setting<fs::path>::value);
    return found != target_.identities.end() ? found->origin : "";
  }

  // Asks for this server's own password, after it has refused the shared one. Returns nullopt if none is
  // typed.
  std::optional<std::string> ask_own() {
    auto own = secrets_.ask(fmt::format("{} refused it. Password for it: ", target_.describe()));
    patience_.restart();
    return own && !own->empty() ? std::move(own) : std::nullopt;
  }

  // For a server that asks questions itself and does not accept a plain password.
  bool try_typed_answers() {
    shared_used_ = false;
    if (try_interactive(std::nullopt, "the typed answers")) {
      return true;
    }
    const auto own = shared_used_ && allows(SSH_AUTH_METHOD_INTERACTIVE) ? ask_own() : std::nullopt;
    return own && try_interactive(*own, "the second typed password");
  }

  bool try_password(const std::string& password, const std::string& what) {
    if (allows(SSH_AUTH_METHOD_PASSWORD)) {
      const int rc = finish([&] { return ssh_userauth_password(session_, user(), password.c_str()); });
      if (accepted(rc, what)) {
        return true;
      }
    }
    return any_answer_ && allows(SSH_AUTH_METHOD_INTERACTIVE) &&
           try_interactive(password, what + ", asked interactively");
  }

  // Answers the first hidden question: with the password if the question asks for it. Other questions, such
  // as for a one-time code, are passed to the user. If nobody can be asked, the password is the answer.
  std::optional<std::string> first_hidden_answer(const std::optional<std::string>& password,
                                                 std::string_view prompt) {
    const bool for_password =
        prompt.find("assword") != std::string_view::npos || prompt.find("PASSWORD") != std::string_view::npos;
    if (password && (for_password || !secrets_.can_ask())) {
      return password;
    }
    if (!password && for_password) {
      shared_used_ = true;
      return shared_password();
    }
    return secrets_.ask(fmt::format("{}: {}", target_.describe(), prompt));
  }

  // The server may ask several questions. first_hidden_answer() answers one of them, the user the others.
  bool try_interactive(const std::optional<std::string>& password, const std::string& what) {
    if (nobody_answers_) {
      return false;
    }
    constexpr int most_rounds = 20;
    constexpr std::size_t longest_prompt = 1000;
    bool first_used = false;
    for (int round = 0; round < most_rounds; ++round) {
      const int rc = finish([&] { return ssh_userauth_kbdint(session_, user(), nullptr); });
      if (rc != SSH_AUTH_INFO) {
        return accepted(rc, what);
      }
      const int count = ssh_userauth_kbdint_getnprompts(session_);
      for (int i = 0; i < count; ++i) {
        char echo = 0;
        const char* text = ssh_userauth_kbdint_getprompt(session_, static_cast<unsigned>(i), &echo);
        const std::string prompt = visible_text(text != nullptr ? text : "", longest_prompt);
        std::optional<std::string> answer;
        if (echo == 0 && !first_used) {
          first_used = true;
          answer = first_hidden_answer(password, prompt);
        } else {
          answer = secrets_.ask(fmt::format("{}: {}", target_.describe(), prompt));
        }
        patience_.restart();
        if (!answer) {  // the server would count an empty answer as a wrong one
          add_problem(
              {"",
               fmt::format("the server asks '{}' and there is no terminal to answer on", trim(prompt)),
               {}});
          nobody_answers_ = true;
          return false;
        }
        ssh_userauth_kbdint_setanswer(session_, static_cast<unsigned>(i), answer->c_str());
      }
    }
    throw Error(what_failed_, fmt::format("{} asks questions without end", target_.host.value),
                "check the server's PAM settings");
  }

  // A server lists the allowed methods when it refuses something.
  void learn_methods() {
    if (!any_answer_) {
      ask_without_method();
    }
  }

  // Tries to log in without credentials, in case the network or an empty password is sufficient. Used only if
  // nothing else is left to try, because it takes a round trip and one of the six attempts that sshd allows.
  bool try_none() {
    const std::size_t shown = filter_ ? filter_->shown() : 0;
    if (!needs_no_method_ && tried_.size() + shown < 5) {
      ask_without_method();
    }
    return needs_no_method_;
  }

  void ask_without_method() {
    needs_no_method_ = finish([&] { return ssh_userauth_none(session_, user()); }) == SSH_AUTH_SUCCESS;
    any_answer_ = true;
  }

  std::string allowed_methods() {
    learn_methods();
    const auto methods = static_cast<unsigned>(ssh_userauth_list(session_, nullptr));
    std::vector<std::string> names;
    for (const auto& [method, name] : {std::pair{SSH_AUTH_METHOD_PUBLICKEY, "publickey"},
                                       {SSH_AUTH_METHOD_PASSWORD, "password"},
                                       {SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"},
                                       {SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi"}}) {
      if ((methods & method) != 0) {
        names.emplace_back(name);
      }
    }
    return names.empty() ? "nothing that is supported here" : join(names, ", ");
  }

  [[noreturn]] void fail() {
    std::string reason = fmt::format("{} allows {}", target_.host.value, allowed_methods());
    reason += tried_.empty() ? "; there was nothing to try" : "; tried " + join(tried_, ", ");
    reason += banner();
    for (const Error& problem : problems_) {
      reason += "; " + problem.message();
    }
    if (!agent_problem_.empty()) {
      reason += "; " + agent_problem_;
    }
    const Error error(what_failed_, reason, hint());
    if (!has_configured_password() && !target_.only_first_identity && openssh_may()) {
      throw error.mended_by(Remedy::log_in);
    }
    const bool needs_key = !refused_.empty() && key_hint_.empty() && allows(SSH_AUTH_METHOD_PUBLICKEY);
    throw needs_key ? error.mended_by(Remedy::authorize_key) : error;
  }

  // Whether ssh(1) could log in although this code could not: it supports more keys and settings, and can ask
  // on a terminal.
  bool openssh_may() const {
    const auto methods = static_cast<unsigned>(ssh_userauth_list(session_, nullptr));
    const bool token = std::ranges::any_of(target_.identities, [](const auto& key) {
      return public_half(key.value).value_or("").find("sk-") == 4;  // after the length of its type
    });
    return token || !target_.openssh_alone.empty() || (methods & SSH_AUTH_METHOD_GSSAPI_MIC) != 0 ||
           ((methods & SSH_AUTH_METHOD_INTERACTIVE) != 0 && refused_.empty() &&
            (nobody_answers_ || !secrets_.can_ask()));
  }

  std::string hint() const {
    if (!key_hint_.empty()) {
      return key_hint_;
    }
    if (!agent_problem_.empty() && refused_.empty()) {
      return agent_hint;
    }
    const auto methods = static_cast<unsigned>(ssh_userauth_list(session_, nullptr));
    const bool passwords = (methods & any_password) != 0;
    if (passwords && !has_configured_password() && (nobody_answers_ || !secrets_.can_ask())) {
      return "run it on a terminal to be asked for the password, or set password_env in configs.yaml";
    }
    if (passwords && has_configured_password()) {
      return "check user name and password";
    }
    const bool ticket = target_.gssapi.value && (methods & SSH_AUTH_METHOD_GSSAPI_MIC) != 0;
    if (ticket && (methods & SSH_AUTH_METHOD_PUBLICKEY) == 0) {
      return "get a ticket of Kerberos with `kinit`";
    }
    if (passwords && (methods & SSH_AUTH_METHOD_PUBLICKEY) == 0) {
      return "the server accepts passwords but no keys: set password_env or password_command in configs.yaml";
    }
    return fmt::format(
        "check that the user name is right, and put your public key on the server: "
        "ssh-copy-id -p {} {}@{}{}",
        target_.port.value, target_.user.value, target_.host.value,
        ticket ? ", or get a ticket of Kerberos with `kinit`" : "");
  }

  ssh_session session_;
  const Target& target_;
  Secrets& secrets_;
  Patience& patience_;
  const std::string what_failed_;
  std::vector<std::string> tried_;
  std::string trying_;  // the method that the server has not answered yet
  bool shown_page_ = false;
  std::vector<Error> problems_;
  std::string agent_problem_;
  std::optional<AgentFilter> filter_;  // also reports which key was used
  AcceptedKeys keys_;
  bool needs_no_method_ = false;  // the server let us in without authentication
  bool any_answer_ = false;
  bool partial_ = false;         // a method was accepted in this round
  bool nobody_answers_ = false;  // there is nobody to answer a question of the server
  bool wrong_path_ = false;      // configs.yaml names a key file that does not exist
  bool shared_used_ = false;     // the password typed for all servers was used
  std::vector<std::string> refused_;
  std::string key_hint_;  // a hint about the first unusable key file
};

}  // namespace

AcceptedKeys authenticate(ssh_session session, const Target& target, Secrets& secrets, Patience& patience) {
  return Login(session, target, secrets, patience).run();
}

}  // namespace remote::ssh
