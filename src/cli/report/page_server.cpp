#include "cli/report/page_server.hpp"

#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/hashing.hpp"

namespace remote::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

// What is served, and to whom.
struct Content {
  std::string host;  // as browsers name it: "127.0.0.1:40123"
  std::string path;  // "/SECRET/"
  std::mutex mutex;
  std::string page;
  std::string data;

  Response answer(const Request& request) {
    Response response{http::status::not_found, 11};
    response.set(http::field::cache_control, "no-store");
    response.set("X-Content-Type-Options", "nosniff");
    response.set("Referrer-Policy", "no-referrer");
    response.keep_alive(false);
    // Another name that leads here is another site's trick to read the page (DNS rebinding).
    const bool ours = request[http::field::host] == host && request.method() == http::verb::get;
    const std::lock_guard lock(mutex);
    if (ours && request.target() == path) {
      response.set(http::field::content_type, "text/html; charset=utf-8");
      response.result(http::status::ok);
      response.body() = page;
    } else if (ours && request.target() == path + "data.json") {
      response.set(http::field::content_type, "application/json");
      response.result(http::status::ok);
      response.body() = data;
    }
    response.prepare_payload();
    return response;
  }
};

// One connection: one request and its answer. It lives as long as something is on its way.
class Visit : public std::enable_shared_from_this<Visit> {
 public:
  Visit(tcp::socket socket, Content& content) : stream_(std::move(socket)), content_(content) {}

  void begin() {
    stream_.expires_after(std::chrono::seconds(10));
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) {
                         self->reply();
                       }
                     });
  }

 private:
  void reply() {
    response_ = content_.answer(request_);
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code, std::size_t) {
      beast::error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  Content& content_;
  beast::flat_buffer buffer_{8192};  // more is no request of a browser
  Request request_;
  Response response_;
};

}  // namespace

struct PageServer::State {
  Content content;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  std::string address;
  std::thread thread;

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) {
        return;
      }
      if (!error) {
        std::make_shared<Visit>(std::move(socket), content)->begin();
      }
      accept();
    });
  }
};

PageServer::PageServer() : state_(std::make_unique<State>()) {
  try {
    const tcp::endpoint here(asio::ip::address_v4::loopback(), 0);
    state_->acceptor.open(here.protocol());
    state_->acceptor.bind(here);
    state_->acceptor.listen();
    state_->content.host = fmt::format("127.0.0.1:{}", state_->acceptor.local_endpoint().port());
  } catch (const boost::system::system_error& error) {
    throw Error("cannot serve the report", error.code().message(),
                "without --watch the page is written to a file");
  }
  state_->content.path = "/" + random_hex(32) + "/";
  state_->address = "http://" + state_->content.host + state_->content.path;
  state_->accept();
  state_->thread = std::thread([this] { state_->context.run(); });
}

PageServer::~PageServer() {
  state_->context.stop();
  state_->thread.join();
}

const std::string& PageServer::address() const {
  return state_->address;
}

void PageServer::set(std::string page, std::string data) {
  const std::lock_guard lock(state_->content.mutex);
  state_->content.page = std::move(page);
  state_->content.data = std::move(data);
}

}  // namespace remote::cli
