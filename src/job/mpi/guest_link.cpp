#include "job/mpi/guest_link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace harness::mpi {
namespace {

struct Header {
  Call call{};
  std::uint64_t length = 0;
};

bool try_later() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
}

}  // namespace

GuestLink::GuestLink(int fd) : end_(fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // an end that a worker inherited would hide that this process is gone
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

void GuestLink::send(Call call, std::string_view bytes) {
  const Header header{call, bytes.size()};
  pending_.append(reinterpret_cast<const char*>(&header), sizeof header).append(bytes);
  write_some();
}

void GuestLink::send(const Note& note) {
  send(Call::note, job::encode_fields(note));
}

void GuestLink::pump() {
  write_some();
  read_some();
}

void GuestLink::write_some() {
  while (written_ < pending_.size()) {
    const ssize_t n = ::send(end_.number(), pending_.data() + written_, pending_.size() - written_, MSG_NOSIGNAL);
    if (n > 0) {
      written_ += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      if (try_later()) return;
      break;  // nobody reads it any more; what was written before, read_some() finds, and then the end
    }
  }
  pending_.clear();
  written_ = 0;
}

void GuestLink::read_some() {
  std::array<char, 65536> buffer{};
  while (!closed_) {
    const ssize_t n = ::recv(end_.number(), buffer.data(), buffer.size(), 0);
    if (n > 0) {
      arriving_.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n < 0 && try_later()) {
      break;
    } else if (n == 0 || errno != EINTR) {
      closed_ = true;
    }
  }
  take_frames();
}

void GuestLink::take_frames() {
  std::size_t at = 0;
  Header header;
  while (arriving_.size() - at >= sizeof header) {
    std::memcpy(&header, arriving_.data() + at, sizeof header);
    if (arriving_.size() - at - sizeof header < header.length) break;
    std::string bytes = arriving_.substr(at + sizeof header, header.length);
    at += sizeof header + header.length;
    if (header.call == Call::note) {
      notes_.push_back(job::decode_fields<Note>(bytes));
    } else {
      frames_.push_back({header.call, std::move(bytes)});
    }
  }
  arriving_.erase(0, at);
}

std::optional<GuestLink::Frame> GuestLink::next() {
  if (frames_.empty()) return std::nullopt;
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

std::optional<Note> GuestLink::next_note() {
  if (notes_.empty()) return std::nullopt;
  const Note note = notes_.front();
  notes_.pop_front();
  return note;
}

}  // namespace harness::mpi
