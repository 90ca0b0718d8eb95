#include "agent/job/web_port.hpp"

#include <string>
#include <vector>

#include "agent/facts/listeners.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/record.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {

wire::WebPortReply find_web_port(const Host& host, const wire::WebPortRequest& request) {
  const JobsFolder folder = JobsFolder::of(host, request.place);
  const std::vector<std::string> words = read_job_words(folder.jobs / request.id / "web");
  const int port = words.size() == 2 ? parse_number<int>(words[0]).value_or(0) : 0;
  if (port < 1 || port > 65535 || !wire::is_word(words[1], "") || words[1].size() > 200 ||
      !is_own_listener(host, port)) {
    return {};
  }
  return {port, words[1]};
}

}  // namespace remote::agent
